import type { InitializeResult } from '@modelcontextprotocol/client';
import { TrackedCall, type CallLimits } from './call.js';
import { Position } from './position.js';
import type { Shelf } from './storage.js';
import type { CallOptions } from './types.js';

/** What a page needs to go on with a session without asking who it is talking to. */
export interface StoredSession {
  id: string;
  serverUrl: string;
  initialize: InitializeResult;
}

/** The session, its standalone stream and its calls, in memory and in the storage. */
export class SessionState {
  #session: StoredSession | undefined;
  #standalone: Position;
  #calls: readonly TrackedCall[];

  private readonly limits: CallLimits;

  constructor(
    readonly shelf: Shelf,
    limits: Omit<CallLimits, 'makeRoom'>,
    private readonly maxEnded: number,
  ) {
    this.limits = { ...limits, makeRoom: () => this.#makeRoom() };
    const id = shelf.text('session_id');
    const rest = shelf.json<Omit<StoredSession, 'id'>>('session');
    if (id && rest?.initialize && rest.serverUrl) this.#session = { id, ...rest };
    // The second name is the one that older pages used.
    const cursor = shelf.text('last_event_id') ?? shelf.text('get_stream_token');
    this.#standalone = new Position({ cursor, handled: shelf.json<string[]>('last_event_handled') });
    this.#calls = [];
    this.#calls = (shelf.json<string[]>('calls') ?? [])
      .map(each => TrackedCall.load(each, shelf, this.limits))
      .filter(each => each !== undefined);
  }

  get session(): StoredSession | undefined {
    return this.#session;
  }
  get standalone(): Position {
    return this.#standalone;
  }
  get calls(): readonly TrackedCall[] {
    return this.#calls;
  }
  call(id: unknown): TrackedCall | undefined {
    return this.#calls.find(each => each.id === id);
  }

  begin(session: StoredSession): void {
    this.#session = session;
    const { id, ...rest } = session;
    this.shelf.put('session_id', id);
    this.shelf.putJson('session', rest);
    this.#standalone = new Position();
    this.saveStandalone();
  }

  /** Forgets the session and keeps its calls. */
  end(): void {
    this.#session = undefined;
    this.#standalone = new Position();
    for (const key of ['session_id', 'session', 'last_event_id', 'last_event_handled', 'get_stream_token'])
      this.shelf.put(key, undefined);
  }

  clear(): void {
    this.end();
    for (const call of this.#calls) call.erase();
    this.#calls = [];
    this.shelf.put('calls', undefined);
  }

  saveStandalone(): void {
    const { cursor, handled } = this.#standalone.stored();
    this.shelf.put('last_event_id', cursor);
    this.shelf.putJson('last_event_handled', handled);
  }

  addCall(id: string, tool: string, args: Record<string, unknown>, options: CallOptions): TrackedCall {
    const call = TrackedCall.begin(id, tool, args, options, this.shelf, this.limits);
    this.#calls = [...this.#calls, call];
    for (const ended of this.#calls.filter(each => !each.isRunning).slice(0, -this.maxEnded || undefined)) this.#drop(ended);
    this.#saveList();
    return call;
  }

  removeCall(call: TrackedCall): void {
    this.#drop(call);
    this.#saveList();
  }

  #makeRoom(): boolean {
    const oldest = this.#calls.find(each => !each.isRunning);
    if (oldest) this.removeCall(oldest);
    return oldest !== undefined;
  }
  #drop(call: TrackedCall): void {
    call.erase();
    this.#calls = this.#calls.filter(each => each !== call);
  }
  #saveList(): void {
    this.shelf.putJson('calls', this.#calls.map(each => each.id));
  }
}
