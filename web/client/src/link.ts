// A page's link to its server, as a machine without I/O: `step` takes what happened and gives the next state and what is
// to be done about it. Whatever takes time is done in a turn and tells its number with what came of it, so that nobody
// listens to an attempt that was given up. The driver is `client`.
import type { Status } from './types.js';

export interface Trouble {
  readonly reason: 'unreachable' | 'offline';
  readonly retryAt: number;
}

/** What the user asked for. Only `connect` may lead to a login page, or to a session in place of the stored one. */
export type Wish = 'connect' | 'reconnect';

/** Nothing is under way. */
export type Resting =
  | { readonly name: 'closed' }
  /** Another tab has gone on with the session: what is stored is newer than what is here. */
  | { readonly name: 'taken-over' }
  | { readonly name: 'authorizing' }
  | { readonly name: 'refused'; readonly why: string };

/** A session is being begun. */
interface Fresh {
  /** Handshakes before this one. */
  readonly attempt: number;
  /** It takes the place of one that the server no longer knows. */
  readonly isExpired: boolean;
  readonly mayRedirect: boolean;
  readonly trouble?: Trouble;
}

export type LinkState =
  | Resting
  /** Is there a login for the stored session? Until that is known, all looks as before. */
  | { readonly name: 'checking'; readonly wish: Wish; readonly before: Resting }
  /** Is the stored session this page's? */
  | { readonly name: 'claiming'; readonly wish: Wish }
  /** Does the server still know it? */
  | { readonly name: 'restoring'; readonly wish: Wish; readonly trouble?: Trouble }
  /** With a handshake, and what the server said of it before it failed. */
  | ({ readonly name: 'beginning'; readonly verdict?: 'gone' | 'unauthorized' } & Fresh)
  /** Before another handshake. */
  | ({ readonly name: 'pausing' } & Fresh)
  | { readonly name: 'connected'; readonly hasSession: boolean; readonly isExpired: boolean }
  /** Was connected, and comes back by itself. */
  | { readonly name: 'cut'; readonly hasSession: boolean; readonly trouble: Trouble };

export interface Link {
  readonly turn: number;
  readonly state: LinkState;
  readonly wasReconnected: boolean;
  readonly recovered: number;
}

/** `locked`: whether there is a login for it has to be looked up. */
export type Kept = 'none' | 'open' | 'locked';

export type LinkEvent =
  | { readonly type: Wish; readonly kept: Kept }
  | { readonly type: 'close' }
  /** Another tab took the session. */
  | { readonly type: 'seized' }
  | ({ readonly turn: number } & Told);

/** What came of a turn. */
export type Told =
  | { readonly type: 'checked'; readonly hasLogin: boolean }
  /** `foreign`: another page uses it, and this one has a copy. `replaced`: there is another one in its place by now. */
  | { readonly type: 'claimed'; readonly claim: 'granted' | 'foreign' | 'replaced' }
  | { readonly type: 'paused' }
  /** The handshake is done. */
  | { readonly type: 'begun'; readonly hasSession: boolean }
  /** The handshake, or the look for a login. */
  | { readonly type: 'failed'; readonly error: unknown; readonly message: string }
  | { readonly type: 'gone' }
  | { readonly type: 'unauthorized' }
  | ({ readonly type: 'troubled' } & Trouble)
  | { readonly type: 'healthy' }
  | { readonly type: 'recovered'; readonly count: number };

/** What whoever asked is told. */
export type Outcome =
  /** The session is one that was there before; it is a new one; there is none to go back to; it was given up. */
  | { readonly type: 'back' | 'fresh' | 'none' | 'left' }
  | { readonly type: 'refused'; readonly error: unknown; readonly isExpired: boolean };

export type LinkAction =
  /** Of this turn, which they keep: at most one in a step. */
  | { readonly type: 'check' | 'claim' | 'restore' | 'begin' }
  | { readonly type: 'pause'; readonly attempt: number }
  /** Of former turns. */
  | { readonly type: 'shut' }
  /** The claim to the session. */
  | { readonly type: 'release' }
  /** What is stored is another tab's. */
  | { readonly type: 'leave' }
  /** The session is over, and its calls with it. */
  | { readonly type: 'end'; readonly why: string }
  /** The session and its calls are none of ours. */
  | { readonly type: 'forget'; readonly why: string }
  | { readonly type: 'settle'; readonly outcome: Outcome };

export type Step = readonly [Link, ...LinkAction[]];

const NO_SESSION = 'There is no session to go on with: the server keeps none, or it was left for another server.';
const SESSION_GONE = 'The server no longer knows the session: it has expired, or the server was restarted.';
const LOGIN_GONE = 'The login of this session is gone.';

export const unlinked: Link = { turn: 0, state: { name: 'closed' }, wasReconnected: false, recovered: 0 };

export function step(link: Link, event: LinkEvent): Step {
  if ('turn' in event) return event.turn === link.turn ? told(link, event) : [link];
  switch (event.type) {
    case 'close':
      // Taken over it stays: what is stored is still newer.
      return link.state.name === 'taken-over' ? [link] : [...rest(link, { name: 'closed' }), { type: 'release' }];
    case 'seized':
      return link.state.name === 'closed' ? [link] : [...rest(link, { name: 'taken-over' }), { type: 'leave' }];
    default:
      return asked(link, event.type, event.kept);
  }
}

function asked(link: Link, wish: Wish, kept: Kept): Step {
  const { state } = link;
  switch (state.name) {
    case 'closed':
    case 'taken-over':
    case 'authorizing':
    case 'refused':
      if (wish === 'connect' && (kept === 'none' || state.name !== 'taken-over'))
        return begin(link, { isExpired: false, mayRedirect: true }, { type: 'end', why: NO_SESSION });
      if (kept === 'none') return [link, settle({ type: 'none' })];
      if (kept === 'open') return claim(link, wish);
      return [turn(link, { name: 'checking', wish, before: state }), { type: 'check' }];
    case 'connected':
    case 'cut':
      return [link, settle({ type: link.wasReconnected ? 'back' : 'fresh' })];
    case 'checking':
      return wish === 'connect' ? [stay(link, { ...state, wish })] : [link];
    default:
      return [link];
  }
}

function told(link: Link, event: Told): Step {
  const { state } = link;
  switch (event.type) {
    case 'checked':
      if (state.name !== 'checking') break;
      if (event.hasLogin) return claim(link, state.wish);
      if (state.wish === 'connect')
        return begin(link, { isExpired: false, mayRedirect: true }, { type: 'end', why: LOGIN_GONE });
      return [turn(link, state.before), { type: 'end', why: LOGIN_GONE }, settle({ type: 'none' })];
    case 'claimed': {
      if (state.name !== 'claiming') break;
      if (event.claim === 'granted') return [turn(link, { name: 'restoring', wish: state.wish }), { type: 'restore' }];
      const type = event.claim === 'foreign' ? 'forget' : 'end';
      return begin(link, { isExpired: false, mayRedirect: state.wish === 'connect' }, { type, why: NO_SESSION });
    }
    case 'paused':
      if (state.name !== 'pausing') break;
      return [turn(link, { ...state, name: 'beginning', attempt: state.attempt + 1 }), { type: 'shut' }, { type: 'begin' }];
    case 'begun': {
      if (state.name !== 'beginning') break;
      const { hasSession } = event;
      return [stay(link, { name: 'connected', hasSession, isExpired: state.isExpired }), settle({ type: 'fresh' })];
    }
    case 'failed':
      if (state.name === 'checking')
        return [turn(link, state.before), settle({ type: 'refused', error: event.error, isExpired: false })];
      // The official client cannot make use of what the server once said of itself.
      if (state.name === 'restoring') return expired(link, state);
      if (state.name !== 'beginning') break;
      return failed(link, state, event.error, event.message);
    case 'gone':
      if (state.name === 'beginning') return [stay(link, { ...state, verdict: 'gone' })];
      if (state.name === 'restoring' || state.name === 'connected' || state.name === 'cut') return expired(link, state);
      break;
    case 'unauthorized':
      if (state.name === 'beginning') return [stay(link, { ...state, verdict: 'unauthorized' })];
      if (state.name === 'restoring' && state.wish === 'connect')
        return begin(link, { isExpired: false, mayRedirect: true }, { type: 'end', why: NO_SESSION });
      if (state.name === 'restoring' || state.name === 'connected' || state.name === 'cut')
        return rest(link, { name: 'authorizing' });
      break;
    case 'troubled': {
      const trouble = { reason: event.reason, retryAt: event.retryAt };
      if (state.name === 'beginning' || state.name === 'restoring' || state.name === 'cut')
        return [stay(link, { ...state, trouble })];
      if (state.name !== 'connected') break;
      return [{ ...stay(link, { name: 'cut', hasSession: state.hasSession, trouble }), recovered: 0 }];
    }
    case 'healthy':
      if (state.name === 'restoring') {
        const back = stay(link, { name: 'connected', hasSession: true, isExpired: false });
        return [{ ...back, wasReconnected: true }, settle({ type: 'back' })];
      }
      if (state.name === 'cut') {
        const back = stay(link, { name: 'connected', hasSession: state.hasSession, isExpired: false });
        return [{ ...back, wasReconnected: link.wasReconnected || state.hasSession }];
      }
      break;
    case 'recovered':
      return [{ ...link, recovered: link.recovered + event.count }];
  }
  return [link];
}

// --- transitions that several events lead to

function stay(link: Link, state: LinkState): Link {
  return { ...link, state };
}
function turn(link: Link, state: LinkState): Link {
  return { ...link, turn: link.turn + 1, state };
}
function settle(outcome: Outcome): LinkAction {
  return { type: 'settle', outcome };
}

function rest(link: Link, state: Resting, outcome: Outcome = { type: 'left' }): Step {
  return [turn(link, state), { type: 'shut' }, settle(outcome)];
}

function claim(link: Link, wish: Wish): Step {
  return [{ ...turn(link, { name: 'claiming', wish }), wasReconnected: false, recovered: 0 }, { type: 'claim' }];
}

function begin(link: Link, how: Pick<Fresh, 'isExpired' | 'mayRedirect'>, ...before: LinkAction[]): Step {
  const next = turn(link, { name: 'beginning', attempt: 0, ...how });
  return [{ ...next, wasReconnected: false, recovered: 0 }, ...before, { type: 'shut' }, { type: 'begin' }];
}

function expired(link: Link, state: LinkState): Step {
  const mayRedirect = state.name === 'restoring' && state.wish === 'connect';
  return begin(link, { isExpired: true, mayRedirect }, { type: 'end', why: SESSION_GONE });
}

function failed(link: Link, state: LinkState & { name: 'beginning' }, error: unknown, message: string): Step {
  const { attempt, isExpired, mayRedirect, trouble, verdict } = state;
  // The session was gone before it was there.
  if (verdict === 'gone')
    return [turn(link, { name: 'pausing', attempt, isExpired, mayRedirect, trouble }), { type: 'pause', attempt }];
  const outcome: Outcome = { type: 'refused', error, isExpired };
  if (verdict === 'unauthorized') return rest(link, { name: 'authorizing' }, outcome);
  return rest(link, { name: 'refused', why: `The server refused: ${message}` }, outcome);
}

// --- what is seen of it

/** Whether there is a connection, or one is being made. */
export function isOpen({ state }: Link): boolean {
  switch (state.name) {
    case 'closed':
    case 'taken-over':
    case 'authorizing':
    case 'refused':
    case 'checking':
      return false;
    default:
      return true;
  }
}

export function statusOf(link: Link, serverUrl: string | undefined): Status {
  const { wasReconnected, recovered, state } = link;
  return { ...describe(state, serverUrl), wasReconnected, recovered };
}

function describe(state: LinkState, serverUrl: string | undefined): Pick<Status, 'state' | 'reason' | 'message' | 'retryAt'> {
  switch (state.name) {
    case 'closed':
      return { state: 'disconnected' };
    case 'taken-over':
      return {
        state: 'disconnected',
        reason: 'taken-over',
        message: 'Taken over by another tab. Connect to take it back.',
      };
    case 'authorizing':
      return { state: 'authorizing', reason: 'unauthorized', message: 'The server wants a login. Connect to log in.' };
    case 'refused':
      return { state: 'error', reason: 'refused', message: state.why };
    case 'checking':
      return describe(state.before, serverUrl);
    case 'claiming':
      return { state: 'reconnecting', message: 'Reconnecting…' };
    case 'restoring':
      return { state: 'reconnecting', ...(state.trouble ? waiting(state.trouble, serverUrl) : { message: 'Reconnecting…' }) };
    case 'beginning':
    case 'pausing': {
      const name = state.isExpired ? 'reconnecting' : 'connecting';
      if (state.trouble) return { state: name, ...waiting(state.trouble, serverUrl) };
      if (!state.isExpired) return { state: name, message: `Connecting to ${serverUrl}…` };
      return { state: name, reason: 'session-expired', message: 'Session expired, reconnecting…' };
    }
    case 'connected':
      return { state: 'connected', reason: state.isExpired ? 'session-expired' : undefined };
    case 'cut':
      return { state: state.hasSession ? 'reconnecting' : 'connecting', ...waiting(state.trouble, serverUrl) };
  }
}

function waiting({ reason, retryAt }: Trouble, serverUrl: string | undefined): Pick<Status, 'reason' | 'message' | 'retryAt'> {
  const message =
    reason === 'offline' ? 'There is no network. Waiting for it…' : `No answer from ${serverUrl}. Trying again…`;
  return { reason, message, retryAt };
}
