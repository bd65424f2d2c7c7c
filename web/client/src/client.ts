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
const NO_SESSION = 'There is no session to go on with: the server keeps none, or it was left for another server.';
const LEFT = 'The session was disconnected.';
const SESSION_GONE = 'The server no longer knows the session: it has expired, or the server was restarted.';

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
  #status: Status;
  #serverUrl: string | undefined;
  #transport: ResumableTransport | undefined;
  #ownership: Ownership | undefined;
  /** The connecting that is under way, so that it is done once however often it is asked for. */
  #opening: Promise<boolean> | undefined;
  /** Counts what the user decided: a connecting that finds another number than it began with is no longer wanted. */
  #wish = 0;
  #mayRedirect = false;
  #lastId = 0;
  #isBeginning = false;
  /** The session was gone before it was there. */
  #wasGone = false;
  /** Another tab has gone on with the session: what is stored is newer than what is here. */
  #wasTakenOver = false;
  #unlisten: (() => void) | undefined;

  constructor(options: BelayClientOptions = {}) {
    this.#options = options;
    const prefix = options.storagePrefix ?? 'mcp_';
    const areas = options.storage ?? { tab: browserStorage('sessionStorage'), shared: browserStorage('localStorage') };
    this.#shared = new Shelf(areas.shared, prefix);
    this.#tab = new Shelf(areas.tab, prefix);
    this.#state = this.#loadState(
      options.persistence === 'browser' ? new Shelf(areas.shared, `${prefix}${this.#tabId()}.`) : this.#tab,
    );
    this.#backoff = new Backoff(options.retryDelay ?? 100, options.maxRetryDelay ?? 30_000);
    // The second name is the one that older pages used.
    const lastUrl = this.#shared.text('server_url', webUrl) ?? this.#shared.text('last_server_url', webUrl);
    this.#serverUrl = options.serverUrl === undefined ? lastUrl : absolute(options.serverUrl);
    this.#status = { state: 'disconnected', wasReconnected: false, recovered: 0 };
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
    if (!(await this.reconnect()) && this.#status.state === 'disconnected' && !this.#status.reason) await this.connect();
  }

  /** Begins a session. Tries for as long as the page lives; rejects if the server answers and refuses. */
  async connect(serverUrl?: string | URL): Promise<void> {
    this.#setServer(serverUrl);
    this.#tab.put('disconnected', undefined);
    if (this.#opening) return void (await this.#opening);
    if (this.#transport) return;
    if (this.#wasTakenOver && (await this.reconnect())) return;
    this.#mayRedirect = true;
    try {
      await this.#open(() => this.#begin());
    } finally {
      this.#mayRedirect = false;
    }
  }

  /**
   * Goes on with the stored session: no handshake, no login page. False if there is none, or if it was gone; then a
   * new one was begun.
   */
  async reconnect(serverUrl?: string | URL): Promise<boolean> {
    this.#setServer(serverUrl);
    if (this.#opening) return this.#opening;
    if (this.#transport) return this.#status.wasReconnected;
    if (this.#wasTakenOver) {
      this.#wasTakenOver = false;
      this.#state = this.#loadState(this.#state.shelf);
      this.#changed();
    }
    const session = this.#state.session;
    if (!session || !this.hasSession) return false;
    if (this.#options.authProvider && !(await hasToken(this.#options.authProvider))) {
      this.#sessionEnded('The login of this session is gone.');
      this.#changed();
      return false;
    }
    return this.#open(() => this.#restore(session));
  }

  /** Ends this page's connections and keeps everything that is stored. */
  async close(): Promise<void> {
    ++this.#wish;
    await this.#shut();
    this.#ownership?.release();
    this.#ownership = undefined;
    this.#set({ state: 'disconnected' });
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
    await this.#makeTransport(undefined).inner.finishAuth(callback);
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

  // --- how a session is opened

  async #open(how: () => Promise<boolean>): Promise<boolean> {
    this.#unlisten ??= this.#listenToPage();
    this.#opening = how();
    try {
      return await this.#opening;
    } finally {
      this.#opening = undefined;
    }
  }

  async #begin(reason?: Status['reason'], message?: string): Promise<boolean> {
    if (this.#serverUrl === undefined) throw new TypeError('There is no address of a server. Pass one to connect().');
    const wish = this.#wish;
    const state = reason ? 'reconnecting' : 'connecting';
    this.#set({ state, wasReconnected: false, recovered: 0, reason, message: message ?? `Connecting to ${this.#serverUrl}…` });
    this.#sessionEnded(NO_SESSION); // what is left of calls that had none, or one of another server
    for (let attempt = 0; ; ++attempt) {
      const transport = this.#makeTransport(undefined);
      this.#transport = transport;
      for (const call of this.#state.calls) if (call.isRunning) transport.begin(call); // made since the last attempt
      this.#isBeginning = true;
      this.#wasGone = false;
      try {
        await this.client.connect(transport, { timeout: NEVER });
        break;
      } catch (error) {
        if (wish !== this.#wish) return false;
        if (this.#status.state === 'authorizing') throw error;
        if (!this.#wasGone) {
          await this.#shut();
          this.#set({ state: 'error', reason: 'refused', message: `The server refused: ${text(error)}` });
          throw error;
        }
        await new Promise(resolve => setTimeout(resolve, this.#backoff.delay(attempt)));
        if (wish !== this.#wish) return false;
      } finally {
        this.#isBeginning = false;
      }
    }
    this.#shared.put('server_url', this.#serverUrl);
    this.#set({ state: 'connected', reason, message: undefined });
    return false;
  }

  async #restore(session: StoredSession): Promise<boolean> {
    const wish = this.#wish;
    this.#set({ state: 'reconnecting', wasReconnected: false, recovered: 0, message: 'Reconnecting…' });
    if (!(await this.#own(session.id))) {
      // This page began with a copy of another one's storage. The session and its calls are the other one's.
      this.#state.clear(NO_SESSION);
      this.#changed();
      return this.#begin();
    }
    if (wish !== this.#wish) return false;
    if (this.#options.persistence === 'browser') {
      // Another tab may have gone on since this one read it.
      this.#state = this.#loadState(this.#state.shelf);
      this.#changed();
      if (this.#state.session?.id !== session.id) return this.#begin();
    }
    this.#tellWire({ at: Date.now(), kind: 'reloaded' });
    this.#state.standalone.rewind();
    const transport = this.#makeTransport(session);
    this.#transport = transport;
    const isBack = new Promise<boolean>(resolve => (this.#onback = resolve));
    try {
      await this.client.connect(transport, { timeout: NEVER });
    } catch {
      // The official client cannot make use of what the server once said of itself.
      if (wish !== this.#wish || this.#transport !== transport) return false;
      this.#gone();
      return isBack;
    }
    for (const call of this.#state.calls) if (call.isRunning) transport.resume(call);
    for (const request of this.#state.requests.all) transport.resumeRequest(request);
    return isBack;
  }

  /** Settles a `#restore`: true, the session is there; false, it is not. */
  #onback: ((isBack: boolean) => void) | undefined;

  async #own(sessionId: string): Promise<boolean> {
    const isShared = this.#options.persistence === 'browser';
    const name = `${this.#state.shelf.prefix}${isShared ? '' : sessionId}`;
    if (this.#ownership?.name === name) return true;
    this.#ownership?.release();
    const ownership = new Ownership(name, () => this.#takenOver());
    this.#ownership = ownership;
    if (await ownership.acquire()) return true;
    if (isShared) {
      await ownership.seize();
      return true;
    }
    ownership.release();
    this.#ownership = undefined;
    return false;
  }

  #takenOver(): void {
    ++this.#wish;
    this.#ownership = undefined;
    this.#wasTakenOver = true;
    void this.#shut();
    this.#set({
      state: 'disconnected',
      reason: 'taken-over',
      message: 'Taken over by another tab. Connect to take it back.',
      retryAt: undefined,
    });
  }

  async #shut(): Promise<void> {
    const transport = this.#transport;
    this.#transport = undefined;
    this.#onback?.(false);
    this.#onback = undefined;
    this.#unlisten?.();
    this.#unlisten = undefined;
    await transport?.close();
  }

  #makeTransport(session: StoredSession | undefined): ResumableTransport {
    const { authProvider, requestInit, fetch } = this.#options;
    let isCurrent = (): boolean => false;
    const only =
      <A extends unknown[]>(work: (...args: A) => void) =>
      (...args: A): void => {
        if (isCurrent()) work(...args);
      };
    const transport = new ResumableTransport(
      {
        url: new URL(this.#serverUrl!),
        session,
        standalone: () => this.#state.standalone,
        inner: { authProvider: withoutSurprise(authProvider, () => this.#mayRedirect), requestInit, fetch },
        backoff: this.#backoff,
        silenceTimeout: this.#options.silenceTimeout ?? 60_000,
        idPrefix: this.#idPrefix,
      },
      {
        adopt: request => this.#adopt(request),
        track: (id, method, params) => this.#state.requests.add(id, method, params),
        begun: only(begun => this.#begun(begun)),
        saveStandalone: only(() => this.#state.saveStandalone()),
        gone: only(() => this.#gone()),
        unauthorized: only(() => this.#unauthorized()),
        troubled: only(retryAt => this.#troubled(retryAt)),
        healthy: only(() => this.#healthy()),
        recovered: only(count => this.#set({ recovered: this.#status.recovered + count })),
        notified: (notification, call) => {
          for (const listener of this.#notificationListeners) guarded(() => listener(notification, call));
        },
        wire: event => this.#tellWire(event),
      },
    );
    isCurrent = () => this.#transport === transport;
    return transport;
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

  #gone(): void {
    if (this.#isBeginning) {
      this.#wasGone = true;
      return;
    }
    const message = 'Session expired, reconnecting…';
    this.#sessionEnded(SESSION_GONE);
    const transport = this.#transport;
    this.#transport = undefined;
    const onback = this.#onback;
    this.#onback = undefined;
    this.#set({ state: 'reconnecting', wasReconnected: false, recovered: 0, reason: 'session-expired', message });
    const fresh = async (): Promise<boolean> => {
      await transport?.close();
      return this.#begin('session-expired', message);
    };
    if (onback) {
      void fresh().then(onback, () => onback(false));
    } else {
      void this.#open(fresh).catch(() => {}); // the status says it
    }
  }

  #sessionEnded(why: string): void {
    for (const call of this.#state.calls) call.fail(new CallError('lost', why));
    this.#state.end(why);
  }

  #unauthorized(): void {
    this.#set({
      state: 'authorizing',
      reason: 'unauthorized',
      message: 'The server wants a login. Connect to log in.',
      retryAt: undefined,
    });
    this.#onback?.(false);
    void this.#shut();
  }

  #troubled(retryAt: number): void {
    const isOffline = globalThis.navigator?.onLine === false;
    const state = this.#state.session ? 'reconnecting' : 'connecting';
    const isNew = this.#status.state === 'connected';
    this.#set({
      state: this.#status.reason === 'session-expired' ? 'reconnecting' : state,
      recovered: isNew ? 0 : this.#status.recovered,
      reason: isOffline ? 'offline' : 'unreachable',
      message: isOffline ? 'There is no network. Waiting for it…' : `No answer from ${this.#serverUrl}. Trying again…`,
      retryAt,
    });
  }

  #healthy(): void {
    const wasReconnected = this.#status.wasReconnected || this.#status.state === 'reconnecting';
    const reason = this.#status.reason === 'session-expired' ? this.#status.reason : undefined;
    this.#set({ state: 'connected', wasReconnected: wasReconnected && !reason, reason, message: undefined, retryAt: undefined });
    this.#onback?.(true);
    this.#onback = undefined;
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

  #set(change: Partial<Status>): void {
    this.#status = { ...this.#status, ...change };
    this.#changed();
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
