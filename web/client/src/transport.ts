// The official transport, with streams that outlive their connections. Ids are unique per page load, so that the same
// session never sees one twice; every stream is read on from its cursor for as long as the page lives; an answer to the
// server's question is delivered, however often that has to be tried.
import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  StreamableHTTPClientTransport,
  type InitializeResult,
  type JSONRPCMessage,
  type JSONRPCNotification,
  type JSONRPCRequest,
  type JSONRPCResponse,
  type LoggingLevel,
  type RequestId,
  type StreamableHTTPClientTransportOptions,
  type Transport,
  type TransportSendOptions,
} from '@modelcontextprotocol/client';
import { Alarm, told } from './backoff.js';
import { TrackedCall } from './call.js';
import { Position } from './position.js';
import type { TrackedRequest } from './requests.js';
import type { StoredSession } from './state.js';
import { CallError, type CallProgress } from './types.js';
import { Saves } from './saves.js';
import { isBusy, STANDALONE, Streams, type Stream, type StreamsHost, type StreamsOptions } from './streams.js';
import { Connection, Wire, type Refusal } from './wire.js';

/** What the server may do for a call beyond the specification: run it once, however often it is sent. */
export const IDEMPOTENCY_KEY = 'belay/idempotencyKey';
const IDEMPOTENCY_FEATURE = 'belay/idempotency';

/** Requests that may be sent again when nobody knows whether they arrived. */
const REPEATABLE = /^(ping|completion\/complete|logging\/setLevel|(tools|prompts|resources|resources\/templates)\/list|resources\/(read|subscribe|unsubscribe)|prompts\/get)$/;

export interface TransportOptions extends StreamsOptions {
  readonly url: URL;
  /** To go on with; undefined: a new one is begun. */
  readonly session: StoredSession | undefined;
  readonly standalone: () => Position;
  readonly inner: StreamableHTTPClientTransportOptions;
  /** Begins the ids of this page load. */
  readonly idPrefix: string;
}

/** Whom the transport tells. */
export interface TransportHost extends StreamsHost {
  /** The tracked call of a request that the official client makes by itself. */
  adopt(request: JSONRPCRequest): TrackedCall;
  /** What is kept of another request of it; undefined if nothing needs to be. */
  track(id: string, method: string, params: Record<string, unknown>): TrackedRequest | undefined;
  begun(session: StoredSession): void;
  saveStandalone(): void;
  notified(notification: JSONRPCNotification, call: TrackedCall | undefined): void;
}

interface Exchange extends Stream {
  readonly message: JSONRPCRequest;
  /** The official client's id for it; undefined if nobody there waits for the answer. */
  readonly origin: RequestId | undefined;
  readonly request: TrackedRequest | undefined;
  readonly wantsProgress: boolean;
  readonly isRepeatable: boolean;
  /** What it is read from, or was last. */
  connection: Connection | undefined;
  isCancelled: boolean;
}

/** Refused for good: trying again would not help. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  constructor(
    readonly status: number,
    message: string,
    readonly code?: number,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

class ClosedError extends Error {
  override readonly name = 'ClosedError';
  constructor() {
    super('The connection was closed.');
  }
}

export class ResumableTransport implements Transport {
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  onmessage: Transport['onmessage'];
  readonly hasPerRequestStream = true;

  readonly #inner: StreamableHTTPClientTransport;
  readonly #streams: Streams;
  readonly #exchanges = new Map<string, Exchange>();
  readonly #origins = new Map<RequestId, Exchange>();
  /** The server's questions that are not answered, and the events that asked them. */
  readonly #questions = new Map<RequestId, { stream: Stream | undefined; events: string[] }>();
  readonly #saves = new Saves();
  #lastId = 0;
  #initialize: InitializeResult | undefined;
  #standaloneStream: Stream | undefined;
  #isReady = false;
  #becomeReady!: () => void;
  readonly #ready = new Promise<void>(resolve => (this.#becomeReady = resolve));
  #isClosed = false;
  /** The event that is being handed out, and where it is from. */
  #current: { stream: Stream; id: string; connection: Connection; isTaken: boolean } | undefined;

  constructor(
    private readonly options: TransportOptions,
    private readonly host: TransportHost,
  ) {
    const { inner, url, session } = options;
    const wire = new Wire(url, inner.fetch ?? ((input, init) => fetch(input, init)));
    this.#initialize = session?.initialize;
    this.#inner = new StreamableHTTPClientTransport(url, {
      ...inner,
      fetch: wire.fetch,
      sessionId: session?.id,
      protocolVersion: session?.initialize.protocolVersion,
      // Coming back is done here, with the cursor of the stream rather than of the connection.
      reconnectionOptions: {
        maxRetries: 0,
        initialReconnectionDelay: 1000,
        maxReconnectionDelay: 1000,
        reconnectionDelayGrowFactor: 1,
      },
    });
    this.#inner.onmessage = message => this.#receive(message);
    this.#streams = new Streams(options, host, this.#inner, wire, (stream, id, connection) =>
      this.#arrived(stream, id, connection),
    );
  }

  /** Undefined until the handshake is done: the official client skips it for a transport that has an id. */
  get sessionId(): string | undefined {
    return this.#isReady ? this.#inner.sessionId : undefined;
  }
  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  async start(): Promise<void> {
    await this.#inner.start();
  }
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#streams.close();
    this.#saves.flush();
    await this.#inner.close();
    this.onclose?.();
  }
  async terminate(): Promise<void> {
    await this.#inner.terminateSession();
  }
  get inner(): StreamableHTTPClientTransport {
    return this.#inner;
  }

  retryNow(): void {
    this.#streams.connections.plug();
    this.#streams.wake();
  }
  drop(): void {
    this.#streams.connections.drop();
  }
  unplug(ms: number): void {
    this.#streams.connections.unplug(ms);
  }

  // --- out

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (this.#isClosed) throw new ClosedError();
    if (isJSONRPCRequest(message)) {
      if (message.method === 'initialize') await this.#handshake(message);
      else await this.#request(message, options?.requestSignal);
    } else if (isJSONRPCNotification(message)) {
      if (message.method === 'notifications/initialized') return this.#initialized(message);
      if (message.method !== 'notifications/cancelled') return this.#deliver(message);
      const exchange = this.#origins.get((message.params as { requestId: RequestId }).requestId);
      if (exchange) await this.#cancel(exchange, (message.params as { reason?: string }).reason);
    } else {
      await this.#answer(message as JSONRPCResponse);
    }
  }

  async #handshake(message: JSONRPCRequest): Promise<void> {
    if (this.#initialize) {
      // An earlier page load has asked. The session still is what it was then.
      const result = this.#initialize;
      queueMicrotask(() => this.onmessage?.({ jsonrpc: '2.0', id: message.id, result }));
      return;
    }
    await this.#deliver(message);
  }

  async #initialized(message: JSONRPCNotification): Promise<void> {
    const id = this.#inner.sessionId;
    if (!this.options.session) {
      await this.#deliver(message);
      if (id && this.#initialize)
        this.host.begun({ id, serverUrl: this.options.url.href, initialize: this.#initialize });
    }
    this.#isReady = true;
    this.#streams.ready();
    this.#becomeReady();
    if (id) this.#openStandalone(this.options.session !== undefined);
    else this.host.healthy();
  }

  /** A request of the official client. */
  async #request(message: JSONRPCRequest, signal: AbortSignal | undefined): Promise<void> {
    const call = message.method === 'tools/call' ? this.host.adopt(message) : undefined;
    const id = call?.id ?? this.nextId();
    const token = message.params?._meta?.progressToken;
    const meta = { ...message.params?._meta, progressToken: call || token !== undefined ? id : undefined };
    const { _meta, ...params } = message.params ?? {};
    const exchange = this.#exchange(
      { ...message, id, params: { ...params, _meta: call ? this.#callMeta(call, meta) : meta } },
      call ?? this.host.track(id, message.method, params),
      { id: message.id, wantsProgress: token !== undefined },
    );
    signal?.addEventListener('abort', () => void this.#cancel(exchange, undefined), { once: true });
    void this.#run(exchange);
  }

  nextId(): string {
    return `${this.options.idPrefix}-${++this.#lastId}`;
  }

  /** Sends a call that nobody in the official client waits for, as soon as there is a session. */
  begin(call: TrackedCall): void {
    void this.#ready.then(() => {
      if (call.isRunning) void this.#run(this.#callExchange(call));
    });
  }

  /** Goes on with a call of an earlier page load. */
  resume(call: TrackedCall): void {
    call.position.rewind();
    const exchange = this.#callExchange(call);
    exchange.wasAway = true;
    if (!call.position.received && !exchange.isRepeatable) this.#lose(exchange, UNKNOWN_OUTCOME);
    else void this.#run(exchange);
  }

  /** Goes on with another request of an earlier page load. */
  resumeRequest(request: TrackedRequest): void {
    request.position.rewind();
    const { id, method, params } = request;
    const exchange = this.#exchange({ jsonrpc: '2.0', id, method, params }, request, undefined);
    exchange.wasAway = true;
    void this.#run(exchange);
  }

  async cancel(call: TrackedCall, reason: string | undefined): Promise<void> {
    const exchange = this.#exchanges.get(call.id);
    if (exchange) await this.#cancel(exchange, reason);
    else call.fail(new CallError('cancelled', 'Cancelled before it was sent.'));
  }

  #callExchange(call: TrackedCall): Exchange {
    const params = {
      name: call.tool,
      arguments: call.args,
      _meta: this.#callMeta(call, { ...call.meta, progressToken: call.id }),
    };
    return this.#exchange({ jsonrpc: '2.0', id: call.id, method: 'tools/call', params }, call, undefined);
  }

  #callMeta(call: TrackedCall, meta: Record<string, unknown>): Record<string, unknown> {
    return this.#canRepeatCalls && meta[IDEMPOTENCY_KEY] === undefined ? { ...meta, [IDEMPOTENCY_KEY]: call.id } : meta;
  }

  get #canRepeatCalls(): boolean {
    return this.#initialize?.capabilities.experimental?.[IDEMPOTENCY_FEATURE] !== undefined;
  }

  #exchange(
    message: JSONRPCRequest,
    tracked: TrackedCall | TrackedRequest | undefined,
    origin: { id: RequestId; wantsProgress: boolean } | undefined,
  ): Exchange {
    const position = tracked?.position ?? new Position();
    const call = tracked instanceof TrackedCall ? tracked : undefined;
    const exchange: Exchange = {
      name: String(message.id),
      message,
      call,
      request: tracked instanceof TrackedCall ? undefined : tracked,
      origin: origin?.id,
      wantsProgress: origin?.wantsProgress ?? false,
      isRepeatable: call ? this.#canRepeatCalls && call.hasArguments : REPEATABLE.test(message.method),
      position: () => position,
      save: () => tracked?.save(),
      alarm: new Alarm(),
      wasAway: false,
      attempt: 0,
      isSettled: false,
      connection: undefined,
      isCancelled: false,
    };
    this.#exchanges.set(exchange.name, exchange);
    if (origin) this.#origins.set(origin.id, exchange);
    return exchange;
  }

  // --- a request, from its POST to its answer

  async #run(exchange: Exchange): Promise<void> {
    let wasSent = exchange.call?.recovered ?? false;
    while (!exchange.isSettled && !this.#isClosed) {
      const cursor = exchange.position().received;
      if (cursor === undefined && wasSent && !exchange.isRepeatable) return this.#lose(exchange, UNKNOWN_OUTCOME);
      if (cursor === undefined && exchange.isCancelled) return this.#settleCancelled(exchange);
      const connection = new Connection(cursor);
      exchange.connection = connection;
      wasSent = true;
      const answer =
        cursor === undefined
          ? await this.#streams.post(exchange.message, connection, exchange)
          : await this.#streams.open(exchange, connection);
      if (exchange.isSettled || this.#isClosed) return;
      if (cursor === undefined && answer?.kind === 'refused') {
        if (isBusy(answer.status)) wasSent = false; // what is refused has not run
        else if (answer.status >= 500 && !exchange.isRepeatable) return this.#fail(exchange, answer);
      }
      const next = await this.#streams.attend(exchange, connection, answer);
      if (next === 'again') continue;
      if (next === 'over') return;
      if (next === 'none') {
        const isTaken = cursor !== undefined && answer?.kind === 'empty';
        return this.#lose(exchange, isTaken ? ANSWER_TAKEN : 'The server sent no answer to this request.');
      }
      if (cursor === undefined) return this.#fail(exchange, next);
      return this.#lose(exchange, `The server no longer keeps this call: ${next.message}`);
    }
  }

  // --- the stream of what belongs to no request

  #openStandalone(wasAway: boolean): void {
    this.#standaloneStream = {
      name: STANDALONE,
      position: this.options.standalone,
      save: () => this.host.saveStandalone(),
      alarm: new Alarm(),
      wasAway,
      attempt: 0,
      isSettled: false,
    };
    void this.#follow(this.#standaloneStream);
  }

  async #follow(stream: Stream): Promise<void> {
    while (!this.#isClosed) {
      const connection = new Connection(stream.position().received);
      const answer = await this.#streams.open(stream, connection);
      if (this.#isClosed) return;
      const next = await this.#streams.attend(stream, connection, answer);
      if (next === 'over') return;
      if (next === 'again') continue;
      // The server has no such stream. Whether it knows the session is still to be seen.
      if (next === 'none' || next.status !== 400 || connection.cursor === undefined) return this.#ping();
      // It does not know the position. There may be no other way to hear of what comes than from the beginning.
      stream.position().forget();
      stream.save();
    }
  }

  async #ping(): Promise<void> {
    try {
      await this.#deliver({ jsonrpc: '2.0', id: this.nextId(), method: 'ping' });
      this.#streams.well(this.#standaloneStream!);
    } catch (error) {
      // 404 and 401 are told already. A session in which nothing is taken is none, if not even a ping is.
      if (error instanceof RefusedError && ![401, 404].includes(error.status)) this.host.gone();
    }
  }

  // --- messages without a stream: notifications, answers, the handshake

  /** Until it was accepted. */
  async #deliver(message: JSONRPCMessage): Promise<void> {
    const waiting = { alarm: new Alarm() };
    for (let attempt = 0; !this.#isClosed; ) {
      const answer = await this.#streams.post(message, new Connection(undefined), undefined);
      if (answer && answer.kind !== 'refused') return this.#streams.well(waiting);
      if (this.#isClosed) break;
      if (!answer || (answer.status >= 500 && answer.status !== 503)) {
        await this.#streams.pause(waiting, told(answer?.retryAfter) ?? this.options.backoff.delay(attempt++), true);
      } else if (answer.status === 429 || answer.status === 503) {
        await this.#streams.pause(waiting, told(answer.retryAfter) ?? this.options.backoff.delay(attempt++), !this.#isReady);
      } else {
        this.#streams.well(waiting);
        if (answer.status === 404 && this.#inner.sessionId) this.host.gone();
        if (answer.status === 401) this.host.unauthorized();
        throw new RefusedError(answer.status, answer.message, answer.code, answer.data);
      }
    }
    throw new ClosedError();
  }

  async #answer(response: JSONRPCResponse): Promise<void> {
    try {
      await this.#deliver(response);
    } catch (error) {
      // An answer that is refused is an answer all the same; asking again would not change it.
      if (!(error instanceof RefusedError) || error.status === 404 || error.status === 401) throw error;
    }
    if (response.id !== undefined) this.#closeQuestion(response.id);
  }

  #closeQuestion(id: RequestId): void {
    const question = this.#questions.get(id);
    if (!question) return;
    this.#questions.delete(id);
    for (const event of question.events) question.stream?.position().done(event);
    if (question.stream) this.#saves.save(question.stream);
  }

  /** The call that asked, for whoever answers. */
  callOfQuestion(id: RequestId): TrackedCall | undefined {
    return this.#questions.get(id)?.stream?.call;
  }

  async #cancel(exchange: Exchange, reason: string | undefined): Promise<void> {
    if (exchange.isSettled || exchange.isCancelled) return;
    exchange.isCancelled = true;
    await this.#deliver({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: exchange.name, reason },
    });
    // The specification lets a server say nothing more. One that does say how it ended says it soon.
    await new Promise(resolve => setTimeout(resolve, CANCEL_GRACE));
    this.#settleCancelled(exchange);
  }

  // --- in

  /** The transport says an event's id right before it hands the event out, and nothing comes between the two. */
  #arrived(stream: Stream, id: string, connection: Connection): void {
    const event = { stream, id, connection, isTaken: false };
    this.#current = event;
    queueMicrotask(() => {
      if (this.#current === event) this.#current = undefined; // not that of another stream
      if (event.isTaken) return;
      // An event without a message. It says where the stream is. Without the first of them a page that ends in this
      // turn could not come back to it, and would ask for the same once more.
      const isFirst = stream.position().stored().cursor === undefined;
      if (stream.position().arrive(id)) stream.position().done(id);
      if (isFirst) stream.save();
      else this.#saves.save(stream);
    });
  }

  #receive(message: JSONRPCMessage): void {
    const event = this.#current;
    this.#current = undefined;
    if (event) event.isTaken = true;
    if (this.#isClosed) return;
    const stream = event?.stream ?? this.#streamOf(message);
    if (event) event.connection.wasOfUse = true;
    const isReplayed = event?.connection.isReplaying ?? false;
    this.host.wire({
      at: Date.now(),
      kind: 'received',
      stream: stream?.name,
      eventId: event?.id,
      replayed: isReplayed || undefined,
      message,
    });
    if (event && !event.stream.position().arrive(event.id)) return this.#saves.save(event.stream);
    const isDone = this.#dispatch(message, stream, event?.id, isReplayed && (stream?.wasAway ?? false));
    if (!event) return;
    if (isDone) event.stream.position().done(event.id);
    this.#saves.save(event.stream);
  }

  #streamOf(message: JSONRPCMessage): Stream | undefined {
    if (isJSONRPCResponse(message)) return this.#exchanges.get(String(message.id));
    if (!isJSONRPCNotification(message) || message.method !== 'notifications/progress') return undefined;
    return this.#exchanges.get(String(message.params?.progressToken));
  }

  /** False: it is handled later. */
  #dispatch(message: JSONRPCMessage, stream: Stream | undefined, eventId: string | undefined, wasMissed: boolean): boolean {
    if (isJSONRPCResponse(message)) {
      const exchange = this.#exchanges.get(String(message.id));
      if (exchange) this.#settle(exchange, message);
      else this.onmessage?.(this.#noteHandshake(message));
      return true;
    }
    if (isJSONRPCRequest(message)) {
      const asked = this.#questions.get(message.id);
      if (asked) {
        if (eventId !== undefined) asked.events.push(eventId);
        return false; // asked again over a new connection: one question, one answer
      }
      this.#questions.set(message.id, { stream, events: eventId === undefined ? [] : [eventId] });
      this.onmessage?.(message);
      return false;
    }
    if (!isJSONRPCNotification(message)) return true;
    // Progress is a state, not a message: of what was missed of it, the last one says it all.
    if (wasMissed && message.method !== 'notifications/progress') this.#streams.missed();
    this.#notify(message, stream, wasMissed);
    return true;
  }

  #noteHandshake(message: JSONRPCResponse): JSONRPCResponse {
    if (!this.#isReady && 'result' in message && 'protocolVersion' in message.result)
      this.#initialize = message.result as InitializeResult;
    return message;
  }

  #notify(message: JSONRPCNotification, stream: Stream | undefined, wasMissed: boolean): void {
    const params = message.params ?? {};
    if (message.method === 'notifications/progress') {
      const { progressToken, progress, total, message: text } = params as unknown as CallProgress & { progressToken: unknown };
      const exchange = this.#exchanges.get(String(progressToken));
      exchange?.call?.progressed({ progress, total, message: text });
      this.host.notified(message, exchange?.call);
      if (exchange?.wantsProgress)
        this.onmessage?.({ ...message, params: { ...params, progressToken: exchange.origin } } as JSONRPCNotification);
      return;
    }
    if (message.method === 'notifications/message' && stream?.call) {
      const { level, logger, data } = params as { level: LoggingLevel; logger?: string; data: unknown };
      stream.call.logged({ at: Date.now(), level, logger, data, recovered: wasMissed || undefined });
    }
    if (message.method === 'notifications/cancelled') this.#closeQuestion((params as { requestId: RequestId }).requestId);
    this.host.notified(message, stream?.call);
    this.onmessage?.(message);
  }

  // --- how a request ends

  #settle(exchange: Exchange, response: JSONRPCResponse): void {
    if (exchange.isSettled) return;
    exchange.isSettled = true;
    this.#exchanges.delete(exchange.name);
    exchange.alarm.ring();
    this.#streams.well(exchange);
    exchange.call?.answered(response);
    exchange.request?.answered(response);
    if (exchange.origin === undefined) return;
    this.#origins.delete(exchange.origin);
    this.onmessage?.({ ...response, id: exchange.origin } as JSONRPCResponse);
  }

  /** The server said nothing more about it. */
  #settleCancelled(exchange: Exchange): void {
    if (exchange.isSettled) return;
    this.#settle(exchange, { jsonrpc: '2.0', id: exchange.name, error: { code: -32800, message: 'Cancelled.' } });
    exchange.connection?.abort.abort();
  }

  #fail(exchange: Exchange, refusal: Refusal): void {
    this.#settle(exchange, {
      jsonrpc: '2.0',
      id: exchange.name,
      error: { code: refusal.code ?? -32000, message: refusal.message, data: refusal.data },
    });
  }

  #lose(exchange: Exchange, why: string): void {
    exchange.call?.fail(new CallError('lost', why));
    this.#settle(exchange, { jsonrpc: '2.0', id: exchange.name, error: { code: -32000, message: why } });
  }
}

const CANCEL_GRACE = 2000;
const UNKNOWN_OUTCOME =
  'The connection broke before the server took the call, and it cannot be asked again: whether the tool ran is not known.';
const ANSWER_TAKEN = 'The answer to this call was delivered to another page.';
