// How streams are read over connections that come and go: opening them, reading on, waiting for a server that does not
// answer, and counting what was missed meanwhile.
import {
  UnauthorizedError,
  type JSONRPCMessage,
  type StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { told, type Alarm, type Backoff } from './backoff.js';
import type { TrackedCall } from './call.js';
import type { Position } from './position.js';
import type { WireEvent } from './types.js';
import { Connection, TAG_HEADER, type Answer, type Refusal, type Wire } from './wire.js';

/** The stream of what belongs to no request. */
export const STANDALONE = 'standalone';

/** A stream, as long as anybody waits for something on it. */
export interface Stream {
  readonly name: string;
  readonly position: () => Position;
  readonly call?: TrackedCall;
  readonly save: () => void;
  readonly alarm: Alarm;
  /** What comes next was missed: the page was away, or its connection broke. */
  wasAway: boolean;
  /** Tries since the server last answered. */
  attempt: number;
  /** Nobody waits for anything on it any more. */
  isSettled: boolean;
}

/** Whom the streams tell. */
export interface StreamsHost {
  /** The server does not know the session (any more). */
  gone(): void;
  unauthorized(): void;
  /** Nobody answers; when the next try is due. */
  troubled(retryAt: number): void;
  /** The server answers again. */
  healthy(): void;
  recovered(count: number): void;
  wire(event: WireEvent): void;
}

export interface StreamsOptions {
  readonly backoff: Backoff;
  readonly silenceTimeout: number;
}

export class Streams {
  readonly #alarms = new Set<Alarm>();
  readonly #troubled = new Set<object>();
  readonly #replaying = new Set<Connection>();
  #recovered = 0;
  #isReady = false;
  #isClosed = false;

  constructor(
    private readonly options: StreamsOptions,
    private readonly host: StreamsHost,
    readonly inner: StreamableHTTPClientTransport,
    readonly connections: Wire,
    /** An event's id, right before the event is handed out. */
    private readonly arrived: (stream: Stream, id: string, connection: Connection) => void,
  ) {}

  /** The handshake is done: from here on all being well is worth telling. */
  ready(): void {
    this.#isReady = true;
  }
  close(): void {
    this.#isClosed = true;
    this.wake();
  }
  /** Whoever waits tries again now. */
  wake(): void {
    for (const alarm of this.#alarms) alarm.ring();
  }
  /** A message came that was sent while nobody listened. */
  missed(): void {
    ++this.#recovered;
  }

  /**
   * What every stream does with the answer to its request: reads it to its end, waits where it is worth another try
   * ('again'), and tells the host where nothing more can come ('over'). What is left is for whoever asked: an answer
   * without a stream ('none'), or the one that says no.
   */
  async attend(
    stream: Stream,
    connection: Connection,
    answer: Answer | undefined,
  ): Promise<'again' | 'over' | 'none' | Refusal> {
    if (!answer) {
      await this.#rest(stream);
      return 'again';
    }
    if (answer.kind === 'events') {
      this.well(stream);
      const isClean = await connection.ended;
      if (stream.isSettled || this.#isClosed) return 'over';
      if (!isClean) stream.wasAway = true;
      await this.pause(stream, this.#waitAfter(stream, connection, isClean), !isClean);
      return 'again';
    }
    if (answer.kind !== 'refused') return 'none';
    if (answer.status === 404 && this.inner.sessionId) {
      this.host.gone();
      return 'over';
    }
    if (answer.status === 401) {
      this.host.unauthorized();
      return 'over';
    }
    if (isBusy(answer.status))
      await this.pause(stream, told(answer.retryAfter) ?? this.options.backoff.delay(stream.attempt++), false);
    else if (answer.status >= 500) await this.#rest(stream, answer.retryAfter);
    else return answer;
    return 'again';
  }

  /**
   * A server that ends a connection on purpose says when to come back, and is taken at its word: it is full, stops, or
   * wants to be asked from time to time. What it said at the beginning of a connection that broke is for clients without
   * a clock of their own.
   */
  #waitAfter(stream: Stream, connection: Connection, isClean: boolean): number {
    if (connection.wasOfUse) stream.attempt = 0;
    const wanted = told(connection.farewell ?? (isClean ? connection.retry : undefined));
    if (wanted === undefined) return this.options.backoff.delay(stream.attempt++);
    return Math.max(wanted, this.options.backoff.delay(0)); // it may say 0
  }

  /** Sends a message; undefined: nobody answered. */
  post(message: JSONRPCMessage, connection: Connection, stream: Stream | undefined): Promise<Answer | undefined> {
    this.host.wire({ at: Date.now(), kind: 'sent', stream: stream?.name, message });
    return this.#over(connection, stream, (tag, onresumptiontoken) =>
      this.inner.send(message, { headers: { [TAG_HEADER]: tag }, onresumptiontoken }),
    );
  }

  /** Reads a stream on; undefined: nobody answered. */
  open(stream: Stream, connection: Connection): Promise<Answer | undefined> {
    return this.#over(connection, stream, (tag, onresumptiontoken) => this.inner.resumeStream(tag, { onresumptiontoken }));
  }

  async #over(
    connection: Connection,
    stream: Stream | undefined,
    ask: (tag: string, onresumptiontoken: (id: string) => void) => Promise<void>,
  ): Promise<Answer | undefined> {
    const tag = this.connections.expect(connection);
    this.#listen(connection, stream);
    try {
      await ask(tag, id => stream && this.arrived(stream, id, connection));
    } catch (error) {
      if (error instanceof UnauthorizedError) return { kind: 'refused', status: 401, message: error.message };
      // A JSON answer that broke off is no answer.
      return connection.answer?.kind === 'refused' ? connection.answer : undefined;
    } finally {
      this.connections.forget(tag);
    }
    return connection.answer;
  }

  #listen(connection: Connection, stream: Stream | undefined): void {
    const { silenceTimeout } = this.options;
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    const watch = (): void => {
      clearTimeout(watchdog);
      if (silenceTimeout <= 0 || !stream || (stream.name !== STANDALONE && !stream.position().received)) return;
      watchdog = setTimeout(() => connection.abort.abort(new TypeError('The connection was silent.')), silenceTimeout);
    };
    connection.onopened = () => {
      const detail = connection.cursor === undefined ? undefined : `after ${connection.cursor}`;
      this.host.wire({ at: Date.now(), kind: 'opened', stream: stream?.name, detail });
      watch();
    };
    connection.onbytes = () => {
      watch();
      if (connection.isReplaying && stream?.wasAway) this.#replaying.add(connection);
    };
    connection.oncaughtup = () => {
      if (stream) stream.wasAway = false;
      this.#replaying.delete(connection);
      this.#tellRecovered();
    };
    void connection.ended.then(isClean => {
      clearTimeout(watchdog);
      this.host.wire({ at: Date.now(), kind: 'ended', stream: stream?.name, detail: isClean ? 'by the server' : 'broken' });
    });
  }

  #tellRecovered(): void {
    if (this.#replaying.size > 0 || this.#recovered === 0) return;
    const count = this.#recovered;
    this.#recovered = 0;
    this.host.recovered(count);
  }

  // --- waiting

  /** After nobody answered. */
  async #rest(stream: Stream, retryAfter?: number): Promise<void> {
    stream.wasAway = true;
    await this.pause(stream, told(retryAfter) ?? this.options.backoff.delay(stream.attempt++), true);
  }

  async pause(stream: { alarm: Alarm }, ms: number, isTrouble: boolean): Promise<void> {
    const wait = Math.max(ms, this.connections.unpluggedFor);
    if (isTrouble) {
      this.#troubled.add(stream);
      this.host.troubled(Date.now() + wait);
    }
    this.#alarms.add(stream.alarm);
    await stream.alarm.wait(wait);
    this.#alarms.delete(stream.alarm);
  }

  well(stream: object): void {
    this.#troubled.delete(stream);
    if (this.#troubled.size === 0 && this.#isReady) this.host.healthy();
  }
}

/** Not now: what was asked for has not been done, and may be asked for again. */
export function isBusy(status: number): boolean {
  return status === 409 || status === 429 || status === 503;
}
