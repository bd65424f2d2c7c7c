import { isCallToolResult, type CallToolResult, type JSONRPCResponse } from '@modelcontextprotocol/client';
import { Position, type StoredPosition } from './position.js';
import type { Shelf } from './storage.js';
import {
  CallError,
  type Call,
  type CallOptions,
  type CallProgress,
  type CallState,
  type LogLine,
} from './types.js';

/** JSON-RPC's code for a call that was stopped on request, as Belay sends it. */
const CANCELLED = -32800;
/** Log lines per storage key: the last ones are written with the call itself, full pages once. */
const PAGE = 32;

export interface CallLimits {
  readonly resultBytes: number;
  readonly logLines: number;
  readonly storedLogLines: number;
  /** The storage is full: drops the oldest of what is not needed any more. False: there is nothing to drop. */
  readonly makeRoom: () => boolean;
}

interface StoredCall {
  tool: string;
  arguments: Record<string, unknown>;
  meta?: Record<string, unknown>;
  startedAt: number;
  endedAt?: number;
  state: CallState;
  position?: StoredPosition;
  progress?: CallProgress;
  /** Pages of log lines before `lines`: from the first that is kept up to the number of full ones. */
  pages?: [number, number];
  lines?: LogLine[];
  dropped?: number;
  /** The size of the result, which has a key of its own, or none if it was too large. */
  resultBytes?: number;
  error?: { state: CallError['state']; message: string; code?: number; data?: unknown };
}

/** A call and its place in the storage: whatever happens to it is written before the next event is looked at. */
export class TrackedCall implements Call {
  readonly position: Position;
  readonly result: Promise<CallToolResult>;
  readonly #listeners = new Set<() => void>();
  #log: LogLine[] = [];
  #options: CallOptions;
  #state: CallState = 'running';
  #progress: CallProgress | undefined;
  #value: CallToolResult | undefined;
  #resultBytes: number | undefined;
  #error: CallError | undefined;
  #endedAt: number | undefined;
  #version = 0;
  #isErased = false;
  #dropped = 0;
  /** Lines since the last full page. */
  #page: LogLine[] = [];
  #pages: [number, number] = [0, 0];
  readonly #gonePages: number[] = [];
  #resolve!: (value: CallToolResult) => void;
  #reject!: (error: CallError) => void;
  oncancel: ((call: TrackedCall, reason: string | undefined) => void) | undefined;

  private constructor(
    readonly id: string,
    readonly tool: string,
    readonly args: Record<string, unknown>,
    readonly meta: Record<string, unknown> | undefined,
    readonly startedAt: number,
    readonly recovered: boolean,
    stored: StoredPosition | undefined,
    private readonly shelf: Shelf,
    private readonly limits: CallLimits,
    options: CallOptions,
  ) {
    this.position = new Position(stored);
    this.#options = options;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.result.catch(() => {}); // who does not ask for it is not told of it as unhandled
  }

  static begin(
    id: string,
    tool: string,
    args: Record<string, unknown>,
    options: CallOptions,
    shelf: Shelf,
    limits: CallLimits,
  ): TrackedCall {
    const meta = options.meta && { ...options.meta };
    const call = new TrackedCall(id, tool, args, meta, Date.now(), false, undefined, shelf, limits, options);
    call.save();
    return call;
  }

  /** Undefined: nothing is stored under that id. */
  static load(id: string, shelf: Shelf, limits: CallLimits): TrackedCall | undefined {
    const stored = shelf.json<StoredCall>(key(id));
    if (!stored || typeof stored.tool !== 'string') return undefined;
    const { tool, meta, startedAt } = stored;
    const call = new TrackedCall(id, tool, stored.arguments ?? {}, meta, startedAt, true, stored.position, shelf, limits, {});
    call.#state = stored.state;
    call.#endedAt = stored.endedAt;
    call.#progress = stored.progress;
    call.#dropped = stored.dropped ?? 0;
    call.#resultBytes = stored.resultBytes;
    call.#pages = stored.pages ?? [0, 0];
    for (let page = call.#pages[0]; page < call.#pages[1]; ++page)
      call.#log.push(...(shelf.json<LogLine[]>(pageKey(id, page)) ?? []));
    call.#page = stored.lines ?? [];
    call.#log.push(...call.#page);
    if (stored.error) {
      const { state, message, code, data } = stored.error;
      call.#error = new CallError(state, message, code, data);
      call.#reject(call.#error);
    } else if (stored.state === 'done') {
      call.#value = shelf.json<CallToolResult>(resultKey(id));
      if (call.#value) call.#resolve(call.#value);
      else call.#reject(new CallError('lost', 'The result was too large to keep across the reload. Call the tool again.'));
    }
    return call;
  }

  get arguments(): Readonly<Record<string, unknown>> {
    return this.args;
  }
  get state(): CallState {
    return this.#state;
  }
  get progress(): CallProgress | undefined {
    return this.#progress;
  }
  get log(): readonly LogLine[] {
    return this.#log;
  }
  get dropped(): number {
    return this.#dropped;
  }
  get value(): CallToolResult | undefined {
    return this.#value;
  }
  get resultBytes(): number | undefined {
    return this.#resultBytes;
  }
  get error(): CallError | undefined {
    return this.#error;
  }
  get endedAt(): number | undefined {
    return this.#endedAt;
  }
  get version(): number {
    return this.#version;
  }
  get isRunning(): boolean {
    return this.#state === 'running';
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  cancel(reason?: string): void {
    if (this.isRunning) this.oncancel?.(this, reason);
  }

  // --- what happens to it

  progressed(progress: CallProgress): void {
    this.#progress = progress;
    this.#changed();
    guarded(() => this.#options.onprogress?.(progress));
  }

  logged(line: LogLine): void {
    this.#log.push(line);
    if (this.#log.length > this.limits.logLines) {
      this.#log.shift();
      ++this.#dropped;
    }
    this.#page.push(line);
    if (this.#page.length >= PAGE) this.#turnPage();
    this.#changed();
    guarded(() => this.#options.onlog?.(line));
  }

  answered(response: JSONRPCResponse): void {
    if (!this.isRunning) return;
    if ('error' in response) {
      const { code, message, data } = response.error;
      this.fail(new CallError(code === CANCELLED ? 'cancelled' : 'failed', message, code, data));
      return;
    }
    if (!isCallToolResult(response.result)) {
      this.fail(new CallError('failed', 'The server sent a result that is none of a tool call.', undefined, response.result));
      return;
    }
    this.#state = 'done';
    this.#value = response.result;
    const text = JSON.stringify(response.result);
    this.#resultBytes = text.length;
    if (text.length <= this.limits.resultBytes) this.shelf.put(resultKey(this.id), text);
    this.#end();
    this.#resolve(this.#value);
  }

  fail(error: CallError): void {
    if (!this.isRunning) return;
    this.#state = error.state;
    this.#error = error;
    this.#end();
    this.#reject(error);
  }

  #end(): void {
    this.#endedAt = Date.now();
    this.save();
    this.#changed();
  }

  #changed(): void {
    ++this.#version;
    for (const listener of [...this.#listeners]) guarded(listener);
  }

  // --- storage

  /** One write holds the position and what was handled up to it, so that none is ever ahead of the other. */
  save(): void {
    if (this.#isErased) return;
    const stored: StoredCall = {
      tool: this.tool,
      arguments: this.args,
      meta: this.meta,
      startedAt: this.startedAt,
      endedAt: this.#endedAt,
      state: this.#state,
      position: this.isRunning ? this.position.stored() : undefined,
      progress: this.#progress,
      pages: this.#pages[1] > 0 ? this.#pages : undefined,
      lines: this.#page.length > 0 ? this.#page : undefined,
      dropped: this.#storedDropped(),
      resultBytes: this.#resultBytes,
      error: this.#error && {
        state: this.#error.state,
        message: this.#error.message,
        code: this.#error.code,
        data: this.#error.data,
      },
    };
    while (!this.shelf.putJson(key(this.id), stored) && this.limits.makeRoom());
    // Only now does nothing name them any more.
    for (const page of this.#gonePages.splice(0)) this.shelf.put(pageKey(this.id, page), undefined);
  }

  /** Nothing of it stays in the storage. */
  erase(): void {
    this.#isErased = true;
    for (let page = this.#pages[0]; page < this.#pages[1]; ++page) this.shelf.put(pageKey(this.id, page), undefined);
    this.shelf.put(resultKey(this.id), undefined);
    this.shelf.put(key(this.id), undefined);
  }

  #turnPage(): void {
    this.shelf.putJson(pageKey(this.id, this.#pages[1]), this.#page);
    ++this.#pages[1];
    this.#page = [];
    while ((this.#pages[1] - this.#pages[0]) * PAGE > this.limits.storedLogLines) {
      this.#gonePages.push(this.#pages[0]);
      ++this.#pages[0];
    }
  }

  #storedDropped(): number | undefined {
    const kept = (this.#pages[1] - this.#pages[0]) * PAGE + this.#page.length;
    const dropped = this.#dropped + this.#log.length - kept;
    return dropped > 0 ? dropped : undefined;
  }
}

function key(id: string): string {
  return `call.${id}`;
}
function pageKey(id: string, page: number): string {
  return `call.${id}.log.${page}`;
}
function resultKey(id: string): string {
  return `call.${id}.result`;
}

/** A listener that throws is its own trouble, not the stream's. */
export function guarded(work: () => void): void {
  try {
    work();
  } catch (error) {
    setTimeout(() => {
      throw error;
    }, 0);
  }
}
