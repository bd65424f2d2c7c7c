// Requests that change something at the server and may have to wait for an answer of the user: a subscription that is
// asked for. A page that is reloaded meanwhile goes on with them, as it does with calls.
import type { JSONRPCResponse } from '@modelcontextprotocol/client';
import type { Budget } from './budget.js';
import { Position, storedPosition } from './position.js';
import { listOf, object, oneOf, optional, record, text, type Shaped } from './shapes.js';
import { CallError, type PendingRequest } from './types.js';

const KEY = 'requests';
const METHODS = ['resources/subscribe'] as const;

const storedRequests = listOf(
  object({ id: text, method: oneOf(...METHODS), params: record, position: optional(storedPosition) }),
);
type StoredRequest = Shaped<typeof storedRequests>[number];

export class TrackedRequest implements PendingRequest {
  readonly position: Position;
  readonly answer: Promise<unknown>;
  #settle!: (response: JSONRPCResponse) => void;

  constructor(
    readonly id: string,
    readonly method: StoredRequest['method'],
    readonly params: Record<string, unknown>,
    readonly recovered: boolean,
    stored: StoredRequest['position'],
    private readonly all: TrackedRequests,
  ) {
    this.position = new Position(stored);
    this.answer = new Promise((resolve, reject) => {
      this.#settle = response => {
        if ('error' in response) reject(new CallError('failed', response.error.message, response.error.code, response.error.data));
        else resolve(response.result);
      };
    });
    this.answer.catch(() => {}); // who does not ask for it is not told of it as unhandled
  }

  save(): void {
    this.all.save();
  }
  answered(response: JSONRPCResponse): void {
    this.all.remove(this);
    this.#settle(response);
  }
}

export class TrackedRequests {
  #all: readonly TrackedRequest[];

  constructor(private readonly budget: Budget) {
    const stored = budget.shelf.json(KEY, storedRequests) ?? [];
    this.#all = stored.map(({ id, method, params, position }) => new TrackedRequest(id, method, params, true, position, this));
  }

  get all(): readonly TrackedRequest[] {
    return this.#all;
  }

  /** Undefined: it is one that a page need not go on with. */
  add(id: string, method: string, params: Record<string, unknown>): TrackedRequest | undefined {
    const tracked = METHODS.find(each => each === method);
    if (!tracked) return undefined;
    const request = new TrackedRequest(id, tracked, params, false, undefined, this);
    this.#all = [...this.#all, request];
    this.save();
    return request;
  }

  remove(request: TrackedRequest): void {
    this.#all = this.#all.filter(each => each !== request);
    this.save();
  }

  /** None of them will be answered. */
  lose(why: string): void {
    for (const request of this.#all)
      request.answered({ jsonrpc: '2.0', id: request.id, error: { code: -32000, message: why } });
  }

  save(): void {
    const stored: StoredRequest[] = this.#all.map(({ id, method, params, position }) => ({
      id,
      method,
      params,
      position: position.stored(),
    }));
    this.budget.putEssential(KEY, stored.length > 0 ? JSON.stringify(stored) : undefined);
  }
}
