import type {
  AuthProvider,
  CallToolResult,
  ClientCapabilities,
  CreateMessageRequestParams,
  CreateMessageResult,
  CreateMessageResultWithTools,
  ElicitRequestParams,
  ElicitResult,
  FetchLike,
  Implementation,
  JSONRPCMessage,
  LoggingLevel,
  OAuthClientProvider,
  Root,
} from '@modelcontextprotocol/client';

export type ConnectionState = 'disconnected' | 'connecting' | 'reconnecting' | 'authorizing' | 'connected' | 'error';

/** Why the connection is in its state, where the state alone does not say. */
export type StatusReason =
  | 'unreachable' // nobody answers at the server's address
  | 'session-expired' // the server no longer knows the session; a new one was opened, or is being opened
  | 'taken-over' // another tab uses this session now
  | 'unauthorized' // the server wants a login
  | 'refused' // the server answers and will not talk to us
  | 'offline'; // the browser says that there is no network

export interface Status {
  readonly state: ConnectionState;
  /** The session is one that an earlier connection began: nothing of it was lost. */
  readonly wasReconnected: boolean;
  /** Notifications that were sent while nobody listened, and that arrived after the last reconnect. */
  readonly recovered: number;
  readonly reason?: StatusReason;
  /** A sentence for people. */
  readonly message?: string;
  /** When the next try is due, in milliseconds since the epoch. `retryNow()` does not wait for it. */
  readonly retryAt?: number;
}

/** `tab`: a session per tab, which survives a reload. `browser`: it survives closing the tab, and moves to the newest. */
export type Persistence = 'tab' | 'browser';

/** What the library needs of `sessionStorage` and `localStorage`. */
export interface StorageArea {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

export interface CallProgress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export interface LogLine {
  /** When this page saw it, in milliseconds since the epoch. */
  readonly at: number;
  readonly level: LoggingLevel;
  readonly logger?: string;
  readonly data: unknown;
  /** It arrived after a reconnect, from the time in which nobody listened. */
  readonly recovered?: boolean;
}

/**
 * `running`: no answer yet. `done`: the tool's result is there, also one with `isError`. `failed`: the server answered
 * with an error. `cancelled`: it was stopped on request. `lost`: no answer will come.
 */
export type CallState = 'running' | 'done' | 'failed' | 'cancelled' | 'lost';

/**
 * What a reload would find of a call. `whole`: all of it. `partly`: how it stands, without what there is no room for in
 * the storage: arguments, log or result. `not`: nothing, because there is no room, or because newer calls needed it.
 */
export type CallKept = 'whole' | 'partly' | 'not';

/** Why there is no result. */
export class CallError extends Error {
  override readonly name = 'CallError';
  constructor(
    readonly state: Exclude<CallState, 'running' | 'done'>,
    message: string,
    /** The JSON-RPC error code, where the server gave one. */
    readonly code?: number,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** One tool call, of this page load or of an earlier one. Read it, and `subscribe` to know when it changed. */
export interface Call {
  /** Unique across page loads; the JSON-RPC id on the wire. */
  readonly id: string;
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** False: the page was reloaded, and `arguments` were too large to keep. */
  readonly hasArguments: boolean;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** An earlier page load began it. */
  readonly recovered: boolean;
  readonly state: CallState;
  readonly progress?: CallProgress;
  /** What the tool logged, oldest first. After a reload: as much of it as the storage keeps. */
  readonly log: readonly LogLine[];
  /** Lines that are no longer in `log`. */
  readonly dropped: number;
  /** With the state `done`. Missing if the page was reloaded and the result was too large to keep (`resultBytes`). */
  readonly value?: CallToolResult;
  /** The size of a result that was too large to keep across a reload. */
  readonly resultBytes?: number;
  /** With the states `failed`, `cancelled`, `lost`. */
  readonly error?: CallError;
  /** `value`, or rejects with `error`. Never settles while the call runs, across as many reconnects as it takes. */
  readonly result: Promise<CallToolResult>;
  readonly kept: CallKept;
  /** Counts changes. */
  readonly version: number;
  /** Asks the server to stop it. The call ends when the server says so. */
  cancel(reason?: string): void;
  subscribe(listener: () => void): () => void;
}

export interface CallOptions {
  onprogress?: (progress: CallProgress) => void;
  onlog?: (line: LogLine) => void;
  /** Aborting it cancels the call. */
  signal?: AbortSignal;
  /** Goes into the request's `_meta`. */
  meta?: Readonly<Record<string, unknown>>;
}

/** A request other than a call that is not answered yet, and that the next page load goes on with. */
export interface PendingRequest {
  /** The JSON-RPC id on the wire. */
  readonly id: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** An earlier page load made it. */
  readonly recovered: boolean;
  /** Settles with the server's answer, or rejects with its error. */
  readonly answer: Promise<unknown>;
}

/** What a question of the server comes with. */
export interface QuestionContext {
  /** The call that asks. Missing if the question belongs to no call of this client. */
  readonly call?: Call;
  /** Aborted when the server no longer wants an answer. */
  readonly signal: AbortSignal;
}

export type SamplingHandler = (
  params: CreateMessageRequestParams,
  context: QuestionContext,
) => Promise<CreateMessageResult | CreateMessageResultWithTools>;
export type ElicitationHandler = (params: ElicitRequestParams, context: QuestionContext) => Promise<ElicitResult>;

/** Something that crossed the wire, or happened to it. */
export interface WireEvent {
  readonly at: number;
  readonly kind: 'sent' | 'received' | 'opened' | 'ended' | 'reloaded';
  /** The stream: `standalone`, or the id of the request it belongs to. */
  readonly stream?: string;
  readonly eventId?: string;
  /** It was sent before this connection was there. */
  readonly replayed?: boolean;
  readonly message?: JSONRPCMessage;
  /** For `opened` and `ended`: how. */
  readonly detail?: string;
}

export interface BelayClientOptions {
  /** The address of the MCP endpoint. Without it: the one of the last connect. */
  serverUrl?: string | URL;
  /** Who this is, told to the server. */
  clientInfo?: Implementation;
  /** Besides those that the handlers below imply. */
  capabilities?: ClientCapabilities;
  /** Answers the server's requests to a model. */
  sampling?: SamplingHandler;
  /** Answers the server's questions to the user. */
  elicitation?: ElicitationHandler;
  roots?: () => Root[] | Promise<Root[]>;

  authProvider?: AuthProvider | OAuthClientProvider;
  /** Sent with every request. */
  requestInit?: RequestInit;
  fetch?: FetchLike;

  /** Default: `tab`. */
  persistence?: Persistence;
  /** Begins the names of all stored keys. Default: `mcp_`. */
  storagePrefix?: string;
  /** Default: `sessionStorage` and `localStorage`, or memory where there are none. */
  storage?: { tab: StorageArea; shared: StorageArea };
  /**
   * How much of the storage calls may take, in characters; the oldest that have ended make room for newer ones. Default:
   * 4 Mi, of the 5 Mi that browsers give a page for everything.
   */
  maxStored?: number;
  /** Results of more characters are not kept across a reload. Default: 1 Mi. */
  maxStoredResult?: number;
  /** Log lines kept per call; the oldest go first. Default: 10,000 in memory, 1,000 across a reload. */
  maxLogLines?: number;
  maxStoredLogLines?: number;
  /** Ended calls kept. Default: 50. */
  maxEndedCalls?: number;

  /** The wait before the first retry, and the longest, in milliseconds. Default: 100 and 30,000. */
  retryDelay?: number;
  maxRetryDelay?: number;
  /** A stream on which nothing, not even a keep-alive, arrived for that long is opened anew. Default: 60,000; 0: never. */
  silenceTimeout?: number;
}
