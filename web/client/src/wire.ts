// The requests below the official transport, through its `fetch` option: what the server answered, when a connection
// ended, and how to drop one. The transport keeps these to itself, and a page that wants to come back must know them.
import type { FetchLike } from '@modelcontextprotocol/client';
import { nextTurn, soon } from './turn.js';

/** Names the exchange a POST belongs to, from the transport's `send` to here. It never leaves the page. */
export const TAG_HEADER = 'x-belay-tag';
const TAG_PREFIX = 'belay-tag:';
/** The transport handles all that it is given without a pause: this much at a time, and so long in one go. */
const PIECE = 16 * 1024;
const LONGEST_TASK = 8;
/** As much of a stream's end as a word about when to come back takes. */
const TAIL = 128;
/** A connection that has held for this long was worth making, whatever it brought. */
const STEADY = 5000;

/** How a request was answered. */
export type Answer = { kind: 'events' | 'json' | 'empty'; status: number } | Refusal;
export interface Refusal {
  kind: 'refused';
  status: number;
  message: string;
  code?: number;
  data?: unknown;
  retryAfter?: number;
}

/** One request and, if its answer is an event stream, the connection that carries it. */
export class Connection {
  answer: Answer | undefined;
  /** What the server said at its beginning about when to come back, in milliseconds. */
  retry: number | undefined;
  /** The same, said at its end: the server ends it on purpose. */
  farewell: number | undefined;
  /** It has brought a message. */
  wasOfUse = false;
  /** It is still being sent what was said before it was there. */
  isReplaying = false;
  /** Settles when the answer's body has ended: true if it ended well. */
  readonly ended: Promise<boolean>;

  onopened: (() => void) | undefined;
  onbytes: (() => void) | undefined;
  oncaughtup: (() => void) | undefined;

  readonly abort = new AbortController();
  #end!: (isClean: boolean) => void;
  #quiet: ReturnType<typeof setTimeout> | undefined;
  #openedAt = 0;
  #text: { decoder: TextDecoder; tail: string; length: number } | undefined;
  /** The last bytes, for what is said last. */
  #tail = new Uint8Array();

  constructor(
    /** Where to read on. Undefined for a POST, and for a stream from its beginning. */
    readonly cursor: string | undefined,
  ) {
    this.ended = new Promise(resolve => (this.#end = resolve));
  }

  opened(): void {
    this.#text = { decoder: new TextDecoder(), tail: '', length: 0 };
    this.onopened?.();
    this.#openedAt = Date.now();
    if (this.cursor === undefined) return;
    this.isReplaying = true;
    this.#whenQuiet(300);
  }

  bytes(chunk: Uint8Array): void {
    this.onbytes?.();
    if (this.#text) this.#scan(this.#text, chunk);
    this.#keepTail(chunk);
    if (this.isReplaying) {
      // What a server has stored comes without a pause. That is all there is to go by where it does not say.
      if (Date.now() - this.#openedAt > 5000) this.#caughtUp();
      else this.#whenQuiet(100);
    }
  }

  end(isClean: boolean): void {
    clearTimeout(this.#quiet);
    // A block of its own, at most followed by comments: not the one that began the stream.
    const farewell = /(?:^|\n\n)retry: ?(\d+)\n(?:\n|:.*\n)*$/.exec(new TextDecoder().decode(this.#tail).replaceAll('\r\n', '\n'));
    if (farewell) this.farewell = Number(farewell[1]);
    if (Date.now() - this.#openedAt > STEADY) this.wasOfUse = true;
    // The transport still hands out what it has read: that takes microtasks only.
    soon(() => {
      this.#caughtUp();
      this.#end(isClean);
    });
  }

  #scan(text: { decoder: TextDecoder; tail: string; length: number }, chunk: Uint8Array): void {
    text.length += chunk.length;
    const seen = text.tail + text.decoder.decode(chunk, { stream: true });
    const retry = /^retry: ?(\d+)$/m.exec(seen);
    if (retry) this.retry = Number(retry[1]);
    if (this.isReplaying && /^: ?caught up$/m.test(seen)) soon(() => this.#caughtUp());
    text.tail = seen.slice(-32);
    // The first event has the wait; a stream that is not being replayed has nothing else to look for.
    if (text.length > 4096 && !this.isReplaying) this.#text = undefined;
  }

  #keepTail(chunk: Uint8Array): void {
    const tail = new Uint8Array(Math.min(TAIL, this.#tail.length + chunk.length));
    const last = chunk.subarray(-TAIL);
    const before = tail.length - last.length;
    tail.set(this.#tail.subarray(this.#tail.length - before));
    tail.set(last, before);
    this.#tail = tail;
  }

  #whenQuiet(ms: number): void {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#caughtUp(), ms);
  }

  #caughtUp(): void {
    clearTimeout(this.#quiet);
    if (!this.isReplaying) return;
    this.isReplaying = false;
    this.oncaughtup?.();
  }
}

export class Wire {
  readonly #endpoint: string;
  readonly #fetch: FetchLike;
  readonly #expected = new Map<string, Connection>();
  readonly #open = new Set<Connection>();
  #tags = 0;
  #unpluggedUntil = 0;

  constructor(endpoint: URL, fetch: FetchLike) {
    this.#endpoint = endpoint.href;
    this.#fetch = fetch;
  }

  /** Announces a request. The tag is for `TAG_HEADER`, or for `resumeStream`. */
  expect(connection: Connection): string {
    const tag = TAG_PREFIX + ++this.#tags;
    this.#expected.set(tag, connection);
    return tag;
  }
  forget(tag: string): void {
    this.#expected.delete(tag);
  }

  /** Breaks what is open. */
  drop(): void {
    for (const connection of this.#open) connection.abort.abort(new TypeError('The connection was dropped.'));
  }
  unplug(ms: number): void {
    this.#unpluggedUntil = Date.now() + ms;
    this.drop();
  }
  plug(): void {
    this.#unpluggedUntil = 0;
  }
  get unpluggedFor(): number {
    return Math.max(0, this.#unpluggedUntil - Date.now());
  }

  readonly fetch: FetchLike = async (url, init = {}) => {
    const request = new URL(url, globalThis.location?.href).href;
    if (request !== this.#endpoint) return this.#fetch(url, init); // authorization
    const headers = new Headers(init.headers);
    const tag = headers.get(TAG_HEADER) ?? headers.get('last-event-id');
    headers.delete(TAG_HEADER);
    const connection = tag === null ? undefined : this.#expected.get(tag);
    if (!connection) {
      // The transport opens a standalone stream by itself. Ours is opened by the one who keeps its cursor.
      if (init.method === 'GET') return new Response(null, { status: 405 });
      return this.#fetch(url, { ...init, headers });
    }
    if (init.method === 'GET') {
      if (connection.cursor === undefined) headers.delete('last-event-id');
      else headers.set('last-event-id', connection.cursor);
    }
    if (this.unpluggedFor > 0) throw new TypeError('The plug is pulled.');
    const signal = init.signal ? AbortSignal.any([init.signal, connection.abort.signal]) : connection.abort.signal;
    this.#open.add(connection);
    let isStreaming = false;
    try {
      const response = await this.#fetch(url, { ...init, headers, signal });
      if (!response.ok) return await refusal(connection, response);
      if (!response.body || response.status === 202 || response.status === 204) {
        connection.answer = { kind: 'empty', status: response.status };
        return response;
      }
      const type = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
      connection.answer = { kind: type === 'text/event-stream' ? 'events' : 'json', status: response.status };
      if (connection.answer.kind === 'json') return response;
      connection.opened();
      isStreaming = true;
      return new Response(this.#watched(connection, response.body), response);
    } finally {
      if (!isStreaming) this.#open.delete(connection);
    }
  };

  #watched(connection: Connection, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    const end = (isClean: boolean): void => {
      this.#open.delete(connection);
      connection.end(isClean);
    };
    let rest: Uint8Array = new Uint8Array();
    let began = 0;
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          if (rest.length === 0) {
            const { done, value } = await reader.read();
            if (done) {
              end(true);
              controller.close();
              return;
            }
            rest = value;
            began = performance.now();
          } else if (performance.now() - began > LONGEST_TASK) {
            await nextTurn();
            began = performance.now();
          }
          const piece = rest.subarray(0, PIECE);
          rest = rest.subarray(PIECE);
          connection.bytes(piece);
          controller.enqueue(piece);
        } catch (error) {
          end(false);
          controller.error(error);
        }
      },
      async cancel(reason) {
        end(false);
        await reader.cancel(reason);
      },
    });
  }
}

async function refusal(connection: Connection, response: Response): Promise<Response> {
  const text = await response.text();
  const retryAfter = waitOf(response.headers.get('retry-after'));
  let error: { code?: number; message?: string; data?: unknown } | undefined;
  try {
    error = (JSON.parse(text) as { error?: typeof error }).error;
  } catch {
    // not JSON: a proxy's page
  }
  connection.answer = {
    kind: 'refused',
    status: response.status,
    message: error?.message ?? `The server answered with HTTP status ${response.status}.`,
    code: error?.code,
    data: error?.data,
    retryAfter,
  };
  return new Response(text, response);
}

/** Seconds, or a date. */
function waitOf(retryAfter: string | null): number | undefined {
  if (retryAfter === null) return undefined;
  const wait = /^\s*\d+\s*$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now();
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}
