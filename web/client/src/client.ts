import {
  Client,
  mergeCapabilities,
  type ClientCapabilities,
  type JSONRPCNotification,
  type JSONRPCRequest,
  type RequestId,
} from '@modelcontextprotocol/client';
import { hasToken, withoutSurprise } from './auth.js';
import { Backoff } from './backoff.js';
import { guarded, type TrackedCall } from './call.js';
import {
  isOpen,
  statusOf,
  step,
  unlinked,
  type Kept,
  type LinkAction,
  type LinkEvent,
  type Outcome,
  type Told,
  type Wish,
} from './link.js';
import { Ownership } from './ownership.js';
import { matching, oneOf } from './shapes.js';
import { SessionState, webUrl, type StoredSession } from './state.js';
import { browserStorage, Shelf } from './storage.js';
import { RefusedError, ResumableTransport } from './transport.js';
import {
  CallError,
  type BelayClientOptions,
  type Call,
  type CallOptions,
  type PendingRequest,
  type QuestionContext,
  type Status,
  type WireEvent,
} from './types.js';

/** Longer than any page lives: the waits that end are those of the transport. */
const NEVER = 2 ** 31 - 1;
const NO_TURN = -1;
const LEFT = 'The session was disconnected.';

/** Part of the names of keys. */
const tabId = matching(/^[\w-]{1,64}$/);

export class BelayClient {
  /** The official client, one for life: lists, resources, prompts, completion, notifications. */
  readonly client: Client;
  readonly #options: BelayClientOptions;
  readonly #shared: Shelf;
  readonly #tab: Shelf;
  #state: SessionState;
  readonly #backoff: Backoff;
  readonly #idPrefix = uniqueText();
  readonly #listeners = new Set<() => void>();
  readonly #wireListeners = new Set<(event: WireEvent) => void>();
  readonly #notificationListeners = new Set<(notification: JSONRPCNotification, call: Call | undefined) => void>();
  #link = unlinked;
  #status: Status;
  /** Those who asked for a connection that is being made. */
  #asking: ((outcome: Outcome) => void)[] = [];
  #serverUrl: string | undefined;
  #transport: ResumableTransport | undefined;
  /** Settles when the official client is done with its last transport. It has one at a time, and mixes up two. */
  #isFree: Promise<unknown> = Promise.resolve();
  #ownership: Ownership | undefined;
  #lastId = 0;
  #unlisten: (() => void) | undefined;

  constructor(options: BelayClientOptions = {}) {
    this.#options = options;
    const prefix = options.storagePrefix ?? 'mcp_';
    const areas = options.storage ?? { tab: browserStorage('sessionStorage'), shared: browserStorage('localStorage') };
    this.#shared = new Shelf(areas.shared, prefix);
    this.#tab = new Shelf(areas.tab, prefix);
    this.#state = this.#loadState(
      options.persistence === 'browser' ? new Shelf(areas.shared, `${prefix}${this.#tabId()}.`) : new Shelf(areas.tab, prefix),
    );
    this.#backoff = new Backoff(options.retryDelay ?? 100, options.maxRetryDelay ?? 30_000);
    // The second name is the one that older pages used.
    const lastUrl = this.#shared.text('server_url', webUrl) ?? this.#shared.text('last_server_url', webUrl);
    this.#serverUrl = options.serverUrl === undefined ? lastUrl : absolute(options.serverUrl);
    this.#status = statusOf(this.#link, this.#serverUrl);
    this.client = this.#makeClient();
  }

  get serverUrl(): string | undefined {
    return this.#serverUrl;
  }
  get sessionId(): string | undefined {
    return this.#state.session?.id;
  }
  /** Whether there is a stored session to go back to. */
  get hasSession(): boolean {
    return this.#state.session !== undefined && this.#state.session.serverUrl === this.#serverUrl;
  }
  get status(): Status {
    return this.#status;
  }

  /** Tells of changes of the status and of the list of calls. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  onwire(listener: (event: WireEvent) => void): () => void {
    this.#wireListeners.add(listener);
    return () => this.#wireListeners.delete(listener);
  }
  onnotification(listener: (notification: JSONRPCNotification, call: Call | undefined) => void): () => void {
    this.#notificationListeners.add(listener);
    return () => this.#notificationListeners.delete(listener);
  }

  // --- connecting

  /** Goes on with the stored session, or begins one. Does nothing after an explicit `disconnect`, reloads included. */
  async start(): Promise<void> {
    if (this.#tab.text('disconnected', oneOf('1'))) return;
    const { type } = await this.#goBack();
    if (type === 'none' && this.#status.state === 'disconnected' && !this.#status.reason) await this.connect();
  }

  /** Begins a session. Tries for as long as the page lives; rejects if the server answers and refuses. */
  async connect(serverUrl?: string | URL): Promise<void> {
    this.#setServer(serverUrl);
    this.#tab.put('disconnected', undefined);
    if (this.#serverUrl === undefined) throw new TypeError('There is no address of a server. Pass one to connect().');
    const outcome = await this.#ask('connect');
    if (outcome.type === 'refused') throw outcome.error;
  }

  /**
   * Goes on with the stored session: no handshake, no login page. False if there is none, or if it was gone; then a
   * new one was begun.
   */
  async reconnect(serverUrl?: string | URL): Promise<boolean> {
    this.#setServer(serverUrl);
    return (await this.#goBack()).type === 'back';
  }

  /** Ends this page's connections and keeps everything that is stored. */
  async close(): Promise<void> {
    this.#happened({ type: 'close' });
    await this.#isFree;
  }

  /** Ends the session at the server, and forgets it with its calls; the server's address stays. */
  async disconnect({ clearSession = true }: { clearSession?: boolean } = {}): Promise<void> {
    if (clearSession) {
      this.#tab.put('disconnected', '1');
      for (const call of this.#state.calls) call.fail(new CallError('lost', LEFT));
      const transport = this.#transport;
      // Somebody who leaves does not wait for a server that is not there.
      if (transport && this.#status.state === 'connected')
        await Promise.race([transport.terminate().catch(() => {}), new Promise(resolve => setTimeout(resolve, 2000))]);
      this.#state.clear(LEFT);
    }
    await this.close();
  }

  /** Back from the login page: takes the parameters of its redirect, then connects. */
  async finishAuth(callback: URLSearchParams): Promise<void> {
    await this.#makeTransport(NO_TURN, undefined).inner.finishAuth(callback);
    await this.connect();
  }

  retryNow(): void {
    this.#transport?.retryNow();
  }

  /** Drops every connection of this page, and lets none be made for that long. */
  pullPlug(ms = 3000): void {
    this.#transport?.unplug(ms);
  }

  // --- calls

  callTool(name: string, args: Record<string, unknown> = {}, options: CallOptions = {}): Call {
    const call = this.#addCall(this.#nextId(), name, args, options);
    if (options.signal?.aborted) {
      call.fail(new CallError('cancelled', 'Cancelled before it began.'));
      return call;
    }
    options.signal?.addEventListener('abort', () => call.cancel(String(options.signal?.reason)), { once: true });
    if (this.#transport) this.#transport.begin(call);
    else call.fail(new CallError('lost', 'There is no connection to a server. Connect first.'));
    return call;
  }

  /** Oldest first; those of earlier page loads are there from the start. */
  calls(): readonly Call[] {
    return this.#state.calls;
  }

  /** Requests that wait for their answer and are no calls, oldest first: subscriptions that the server asks about. */
  pending(): readonly PendingRequest[] {
    return this.#state.requests.all;
  }

  /** Removes a call that has ended. */
  forget(call: Call): void {
    const tracked = this.#state.call(call.id);
    if (!tracked || tracked.isRunning) return;
    this.#state.removeCall(tracked);
    this.#changed();
  }

  #addCall(id: string, name: string, args: Record<string, unknown>, options: CallOptions): TrackedCall {
    const call = this.#state.addCall(id, name, args, options);
    call.oncancel = this.#cancel;
    this.#changed();
    return call;
  }

  readonly #cancel = (call: TrackedCall, reason: string | undefined): void => {
    void this.#transport?.cancel(call, reason).catch(() => {});
  };

  #nextId(): string {
    return `${this.#idPrefix}.${++this.#lastId}`;
  }

  // --- how a session is opened: what the link wants done

  #ask(wish: Wish): Promise<Outcome> {
    return new Promise(resolve => {
      this.#asking.push(resolve);
      this.#happened({ type: wish, kept: this.#kept() });
    });
  }

  async #goBack(): Promise<Outcome> {
    const outcome = await this.#ask('reconnect');
    if (outcome.type === 'refused' && !outcome.isExpired) throw outcome.error;
    return outcome;
  }

  #kept(): Kept {
    if (this.#link.state.name === 'taken-over') this.#reload();
    if (!this.hasSession) return 'none';
    return this.#options.authProvider ? 'locked' : 'open';
  }

  #happened(event: LinkEvent): void {
    const before = this.#link;
    const [link, ...actions] = step(before, event);
    this.#link = link;
    if (link !== before) this.#status = statusOf(link, this.#serverUrl);
    for (const action of actions) {
      if (this.#link.turn !== link.turn) break; // whoever heard of the one before it has asked for something else
      this.#perform(action, link.turn);
    }
    if (link === before) return;
    if (isOpen(this.#link)) {
      this.#unlisten ??= this.#listenToPage();
    } else {
      this.#unlisten?.();
      this.#unlisten = undefined;
    }
    this.#changed();
  }

  #tell(turn: number, told: Told): void {
    this.#happened({ turn, ...told });
  }

  #perform(action: LinkAction, turn: number): void {
    switch (action.type) {
      case 'shut':
        return this.#shut();
      case 'release':
        this.#ownership?.release();
        this.#ownership = undefined;
        return;
      case 'leave':
        return this.#state.shelf.close();
      case 'end':
        for (const call of this.#state.calls) call.fail(new CallError('lost', action.why));
        return this.#state.end(action.why);
      case 'forget':
        return this.#state.clear(action.why);
      case 'settle':
        for (const settle of this.#asking.splice(0)) settle(action.outcome);
        return;
      case 'check':
        return void this.#check(turn);
      case 'claim':
        return void this.#claim(turn);
      case 'restore':
        return void this.#restore(turn);
      case 'begin':
        return void this.#begin(turn);
      case 'pause':
        setTimeout(() => this.#tell(turn, { type: 'paused' }), this.#backoff.delay(action.attempt));
    }
  }

  async #check(turn: number): Promise<void> {
    try {
      this.#tell(turn, { type: 'checked', hasLogin: await hasToken(this.#options.authProvider!) });
    } catch (error) {
      this.#tell(turn, { type: 'failed', error, message: text(error) });
    }
  }

  async #claim(turn: number): Promise<void> {
    const { id } = this.#state.session!;
    const isMine = await this.#own(id);
    if (turn !== this.#link.turn) return;
    if (!isMine) return this.#tell(turn, { type: 'claimed', claim: 'foreign' });
    // Another tab may have gone on since this one read it.
    if (this.#options.persistence === 'browser') this.#reload();
    this.#tell(turn, { type: 'claimed', claim: this.#state.session?.id === id ? 'granted' : 'replaced' });
  }

  async #begin(turn: number): Promise<void> {
    const transport = this.#makeTransport(turn, undefined);
    this.#transport = transport;
    for (const call of this.#state.calls) if (call.isRunning) transport.begin(call); // made since the last attempt
    if (!(await this.#shakeHands(turn, transport))) return;
    this.#shared.put('server_url', this.#serverUrl);
    this.#tell(turn, { type: 'begun', hasSession: this.#state.session !== undefined });
  }

  async #restore(turn: number): Promise<void> {
    this.#tellWire({ at: Date.now(), kind: 'reloaded' });
    this.#state.standalone.rewind();
    const transport = this.#makeTransport(turn, this.#state.session);
    this.#transport = transport;
    const running = this.#state.calls.filter(call => call.isRunning);
    const { all: requests } = this.#state.requests;
    if (!(await this.#shakeHands(turn, transport))) return;
    for (const call of running) if (call.isRunning) transport.resume(call);
    for (const request of requests) transport.resumeRequest(request);
  }

  /** False: it failed, or is no longer wanted. */
  async #shakeHands(turn: number, transport: ResumableTransport): Promise<boolean> {
    await this.#isFree;
    if (turn !== this.#link.turn) return false;
    const done = this.client.connect(transport, { timeout: NEVER });
    this.#isFree = done.catch(() => {});
    try {
      await done;
    } catch (error) {
      this.#tell(turn, { type: 'failed', error, message: text(error) });
      return false;
    }
    return turn === this.#link.turn;
  }

  #shut(): void {
    const transport = this.#transport;
    this.#transport = undefined;
    if (transport) this.#isFree = Promise.allSettled([this.#isFree, transport.close()]);
  }

  #reload(): void {
    const { area, prefix } = this.#state.shelf;
    this.#state.shelf.close();
    this.#state = this.#loadState(new Shelf(area, prefix));
    this.#changed();
  }

  async #own(sessionId: string): Promise<boolean> {
    const isShared = this.#options.persistence === 'browser';
    const name = `${this.#state.shelf.prefix}${isShared ? '' : sessionId}`;
    if (this.#ownership?.name === name) return true;
    this.#ownership?.release();
    const ownership = new Ownership(name, () => {
      this.#ownership = undefined;
      this.#happened({ type: 'seized' });
    });
    this.#ownership = ownership;
    if (await ownership.acquire()) return true;
    if (this.#ownership !== ownership) return false;
    if (isShared) {
      await ownership.seize();
      return true;
    }
    ownership.release();
    this.#ownership = undefined;
    return false;
  }

  #makeTransport(turn: number, session: StoredSession | undefined): ResumableTransport {
    const { authProvider, requestInit, fetch } = this.#options;
    const tell = (told: Told): void => this.#tell(turn, told);
    const mayRedirect = (): boolean => this.#link.state.name === 'beginning' && this.#link.state.mayRedirect;
    return new ResumableTransport(
      {
        url: new URL(this.#serverUrl!),
        session,
        standalone: () => this.#state.standalone,
        inner: { authProvider: withoutSurprise(authProvider, mayRedirect), requestInit, fetch },
        backoff: this.#backoff,
        silenceTimeout: this.#options.silenceTimeout ?? 60_000,
        idPrefix: this.#idPrefix,
      },
      {
        adopt: request => this.#adopt(request),
        track: (id, method, params) => this.#state.requests.add(id, method, params),
        begun: begun => {
          if (turn === this.#link.turn) this.#begun(begun);
        },
        saveStandalone: () => {
          if (turn === this.#link.turn) this.#state.saveStandalone();
        },
        gone: () => tell({ type: 'gone' }),
        unauthorized: () => tell({ type: 'unauthorized' }),
        troubled: retryAt => {
          const isOffline = globalThis.navigator?.onLine === false;
          tell({ type: 'troubled', reason: isOffline ? 'offline' : 'unreachable', retryAt });
        },
        healthy: () => tell({ type: 'healthy' }),
        recovered: count => tell({ type: 'recovered', count }),
        notified: (notification, call) => {
          for (const listener of this.#notificationListeners) guarded(() => listener(notification, call));
        },
        wire: event => this.#tellWire(event),
      },
    );
  }

  // --- what the transport tells

  #adopt(request: JSONRPCRequest): TrackedCall {
    const { name, arguments: args } = request.params as { name: string; arguments?: Record<string, unknown> };
    return this.#addCall(this.#nextId(), name, args ?? {}, {});
  }

  #begun(session: StoredSession): void {
    this.#state.begin(session);
    this.#rememberTab();
    void this.#own(session.id);
  }

  #tellWire(event: WireEvent): void {
    for (const listener of this.#wireListeners) guarded(() => listener(event));
  }

  // --- the rest

  #makeClient(): Client {
    const { clientInfo, capabilities = {}, sampling, elicitation, roots } = this.#options;
    const implied: ClientCapabilities = {};
    if (sampling) implied.sampling = {};
    if (elicitation) implied.elicitation = { form: {}, url: {} };
    if (roots) implied.roots = {};
    const client = new Client(clientInfo ?? { name: 'belay-client', version: '0.1.0' }, {
      capabilities: mergeCapabilities(implied, capabilities),
    });
    const context = (mcpReq: { id: RequestId; signal: AbortSignal }): QuestionContext => ({
      call: this.#transport?.callOfQuestion(mcpReq.id),
      signal: mcpReq.signal,
    });
    if (sampling)
      client.setRequestHandler('sampling/createMessage', (request, { mcpReq }) => sampling(request.params, context(mcpReq)));
    if (elicitation)
      client.setRequestHandler('elicitation/create', (request, { mcpReq }) => elicitation(request.params, context(mcpReq)));
    if (roots) client.setRequestHandler('roots/list', async () => ({ roots: await roots() }));
    client.onerror = () => {}; // what matters is in the status and in the calls
    return client;
  }

  #loadState(shelf: Shelf): SessionState {
    const { maxStoredResult = 1024 * 1024, maxLogLines = 10_000, maxStoredLogLines = 1000 } = this.#options;
    const limits = { resultBytes: maxStoredResult, logLines: maxLogLines, storedLogLines: maxStoredLogLines };
    const { maxEndedCalls = 50, maxStored = 4 * 1024 * 1024 } = this.#options;
    const state = new SessionState(shelf, limits, maxEndedCalls, maxStored);
    for (const call of state.calls) call.oncancel = this.#cancel;
    return state;
  }

  #listenToPage(): () => void {
    if (typeof window === 'undefined') return () => {};
    const online = (): void => this.retryNow();
    const offline = (): void => this.#transport?.drop();
    const visible = (): void => {
      if (document.visibilityState === 'visible' && this.#status.state === 'reconnecting') this.retryNow();
    };
    window.addEventListener('online', online);
    window.addEventListener('offline', offline);
    document.addEventListener('visibilitychange', visible);
    return () => {
      window.removeEventListener('online', online);
      window.removeEventListener('offline', offline);
      document.removeEventListener('visibilitychange', visible);
    };
  }

  /** In browser mode: the part of the shared storage that this tab uses. A new tab takes the one that was used last. */
  #tabId(): string {
    const known = this.#tab.text('tab_id', tabId) ?? this.#shared.text('last_tab_id', tabId);
    const id = known ?? uniqueText();
    this.#tab.put('tab_id', id);
    return id;
  }
  #rememberTab(): void {
    const id = this.#tab.text('tab_id', tabId);
    if (this.#options.persistence === 'browser' && id) this.#shared.put('last_tab_id', id);
  }

  #setServer(serverUrl: string | URL | undefined): void {
    if (serverUrl !== undefined) this.#serverUrl = absolute(serverUrl);
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) guarded(listener);
  }
}

function absolute(url: string | URL): string {
  return new URL(url, globalThis.location?.href).href;
}

function text(error: unknown): string {
  if (error instanceof RefusedError) return error.message;
  return error instanceof Error ? error.message : String(error);
}

function uniqueText(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_');
}
