import { isSpecType, type InitializeResult } from '@modelcontextprotocol/client';
import { Budget } from './budget.js';
import { TrackedCall, type CallLimits } from './call.js';
import { cursor, handled, Position } from './position.js';
import { TrackedRequests } from './requests.js';
import { anything, listOf, matching, object, text, when, type Shape } from './shapes.js';
import type { Shelf } from './storage.js';
import type { CallOptions } from './types.js';

/** What a page needs to go on with a session without asking who it is talking to. */
export interface StoredSession {
  id: string;
  serverUrl: string;
  initialize: InitializeResult;
}

/** The addresses that can be connected to. */
export const webUrl: Shape<string> = when(text, url => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol));
/** A header must be able to carry it. */
const sessionId = matching(/^[\x21-\x7e]{1,1024}$/);
const storedSession = object({
  serverUrl: webUrl,
  initialize: (value): value is InitializeResult => anything(value) && isSpecType.InitializeResult(value),
});

/** The session, its standalone stream, its calls and other requests, in memory and in the storage. */
export class SessionState {
  #session: StoredSession | undefined;
  #standalone: Position;
  #calls: readonly TrackedCall[] = [];
  readonly #budget: Budget;
  readonly requests: TrackedRequests;

  constructor(
    readonly shelf: Shelf,
    private readonly limits: CallLimits,
    private readonly maxEnded: number,
    maxStored: number,
  ) {
    this.#budget = new Budget(
      shelf,
      maxStored,
      () => this.#calls.filter(each => !each.isRunning).map(each => each.id),
      id => this.call(id)?.evicted(),
    );
    const id = shelf.text('session_id', sessionId);
    const rest = shelf.json('session', storedSession);
    if (id && rest) this.#session = { id, serverUrl: rest.serverUrl, initialize: rest.initialize };
    // The second name is the one that older pages used.
    const position = shelf.text('last_event_id', cursor) ?? shelf.text('get_stream_token', cursor);
    this.#standalone = new Position({ cursor: position, handled: shelf.json('last_event_handled', handled) });
    this.requests = new TrackedRequests(this.#budget);
    const ids = [...new Set(shelf.json('calls', listOf(text)))];
    this.#calls = ids.map(each => TrackedCall.load(each, this.#budget, this.limits)).filter(each => each !== undefined);
    // What another tab is about to write for a call on the list stays.
    this.#budget.sweep('call.', ids);
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
    this.#budget.putEssential('session_id', id);
    this.#budget.putEssential('session', JSON.stringify(rest));
    this.#standalone = new Position();
    this.saveStandalone();
  }

  /** Forgets the session and keeps its calls. */
  end(why: string): void {
    this.requests.lose(why);
    this.#session = undefined;
    this.#standalone = new Position();
    for (const key of ['session_id', 'session', 'last_event_id', 'last_event_handled', 'get_stream_token'])
      this.shelf.put(key, undefined);
  }

  clear(why: string): void {
    this.end(why);
    for (const call of this.#calls) call.erase();
    this.#calls = [];
    this.shelf.put('calls', undefined);
  }

  saveStandalone(): void {
    const { cursor, handled } = this.#standalone.stored();
    this.#budget.putEssential('last_event_id', cursor);
    this.#budget.putEssential('last_event_handled', handled && JSON.stringify(handled));
  }

  addCall(id: string, tool: string, args: Record<string, unknown>, options: CallOptions): TrackedCall {
    const call = TrackedCall.begin(id, tool, args, options, this.#budget, this.limits);
    this.#calls = [...this.#calls, call];
    for (const ended of this.#calls.filter(each => !each.isRunning).slice(0, -this.maxEnded || undefined)) this.#drop(ended);
    // The list first: what it does not name is nobody's.
    this.#saveList();
    call.save();
    return call;
  }

  removeCall(call: TrackedCall): void {
    this.#drop(call);
    this.#saveList();
  }

  #drop(call: TrackedCall): void {
    call.erase();
    this.#calls = this.#calls.filter(each => each !== call);
  }
  #saveList(): void {
    this.#budget.putEssential('calls', JSON.stringify(this.#calls.map(each => each.id)));
  }
}
