// The machine below the client, event by event: every state, and what comes in it at the right time and at the wrong one.
import { describe, expect, test } from 'vitest';
import { isOpen, statusOf, step, unlinked, type Link, type LinkAction, type LinkEvent, type LinkState, type Told } from '../src/link.js';

const URL = 'http://server.test/mcp';
const error = new Error('no');

/** Drives a link from where it stands, and remembers what it wanted done last. */
class Drive {
  actions: LinkAction[] = [];
  constructor(public link: Link = unlinked) {}

  asks(...events: Exclude<LinkEvent, { turn: number }>[]): this {
    for (const event of events) [this.link, ...this.actions] = step(this.link, event);
    return this;
  }
  /** What came of the turn that is under way. */
  hears(...told: Told[]): this {
    for (const each of told) [this.link, ...this.actions] = step(this.link, { turn: this.link.turn, ...each });
    return this;
  }
  get status() {
    return { reason: undefined, message: undefined, retryAt: undefined, ...statusOf(this.link, URL) };
  }
  /** With what goes with it in order, as one line. */
  get did(): string {
    return this.actions.map(action => (action.type === 'settle' ? `settle ${action.outcome.type}` : action.type)).join(', ');
  }
}

const connect = (kept: 'none' | 'open' | 'locked' = 'none') => ({ type: 'connect', kept }) as const;
const reconnect = (kept: 'none' | 'open' | 'locked' = 'open') => ({ type: 'reconnect', kept }) as const;
const close = { type: 'close' } as const;
const seized = { type: 'seized' } as const;
const found = { type: 'checked', hasLogin: true } as const;
const notFound = { type: 'checked', hasLogin: false } as const;
const granted = { type: 'claimed', claim: 'granted' } as const;
const foreign = { type: 'claimed', claim: 'foreign' } as const;
const replaced = { type: 'claimed', claim: 'replaced' } as const;
const paused = { type: 'paused' } as const;
const begun = { type: 'begun', hasSession: true } as const;
const begunWithout = { type: 'begun', hasSession: false } as const;
const failed = { type: 'failed', error, message: 'no' } as const;
const gone = { type: 'gone' } as const;
const unauthorized = { type: 'unauthorized' } as const;
const troubled = { type: 'troubled', reason: 'unreachable', retryAt: 5 } as const;
const offline = { type: 'troubled', reason: 'offline', retryAt: 7 } as const;
const healthy = { type: 'healthy' } as const;
const recovered = { type: 'recovered', count: 3 } as const;
const everything: Told[] = [
  found, notFound, granted, foreign, replaced, paused, begun, failed, gone, unauthorized, troubled, healthy, recovered,
];

/** A way to each state. */
const ways = {
  closed: () => new Drive(),
  'taken-over': () => new Drive().asks(connect()).hears(begun).asks(seized),
  authorizing: () => new Drive().asks(connect()).hears(unauthorized, failed),
  refused: () => new Drive().asks(connect()).hears(failed),
  checking: () => new Drive().asks(reconnect('locked')),
  claiming: () => new Drive().asks(reconnect()),
  restoring: () => new Drive().asks(reconnect()).hears(granted),
  beginning: () => new Drive().asks(connect()),
  pausing: () => new Drive().asks(connect()).hears(gone, failed),
  connected: () => new Drive().asks(connect()).hears(begun),
  cut: () => new Drive().asks(connect()).hears(begun, troubled),
} satisfies Record<LinkState['name'], () => Drive>;
const names = Object.keys(ways) as LinkState['name'][];
const resting = ['closed', 'taken-over', 'authorizing', 'refused'] as const;

test.each(names)('%s is reached', name => {
  const { link } = ways[name]();
  expect(link.state.name).toBe(name);
  expect(isOpen(link)).toBe(![...resting, 'checking'].includes(name));
});

describe('what is asked for', () => {
  test.each(['closed', 'authorizing', 'refused'] as const)('%s: connect begins a session, whatever is stored', name => {
    for (const kept of ['none', 'open', 'locked'] as const) {
      const drive = ways[name]().asks(connect(kept));
      expect(drive.link.state).toMatchObject({ name: 'beginning', attempt: 0, isExpired: false, mayRedirect: true });
      expect(drive.did).toBe('end, shut, begin');
    }
  });

  test.each(resting)('%s: reconnect goes back to what is stored', name => {
    const before = ways[name]().link.state;
    expect(ways[name]().asks(reconnect('none'))).toMatchObject({ did: 'settle none', link: { state: before } });
    expect(ways[name]().asks(reconnect())).toMatchObject({ did: 'claim', link: { state: { name: 'claiming' } } });
    expect(ways[name]().asks(reconnect('locked'))).toMatchObject({ did: 'check', link: { state: { name: 'checking', before } } });
  });

  test('taken over: connect takes it back, and begins one only if nothing is stored', () => {
    expect(ways['taken-over']().asks(connect('open'))).toMatchObject({ did: 'claim', link: { state: { wish: 'connect' } } });
    expect(ways['taken-over']().asks(connect('locked'))).toMatchObject({ did: 'check', link: { state: { wish: 'connect' } } });
    expect(ways['taken-over']().asks(connect())).toMatchObject({ did: 'end, shut, begin' });
  });

  test.each(['claiming', 'restoring', 'beginning', 'pausing'] as const)('%s: whoever asks again waits with the others', name => {
    for (const again of [connect('open'), reconnect(), reconnect('none')]) {
      const drive = ways[name]();
      const before = drive.link;
      expect(drive.asks(again)).toMatchObject({ did: '' });
      expect(drive.link).toBe(before);
    }
  });

  test('two reconnects at once look for one login', () => {
    const drive = ways.checking();
    const before = drive.link;
    expect(drive.asks(reconnect('locked')).did).toBe('');
    expect(drive.link).toBe(before);
  });

  test('who connects while a login is looked for gets a session without one', () => {
    const drive = ways.checking().asks(connect('locked'));
    expect(drive.did).toBe('');
    expect(drive.hears(notFound)).toMatchObject({ did: 'end, shut, begin', link: { state: { mayRedirect: true } } });
  });

  test.each(['connected', 'cut'] as const)('%s: it is there', name => {
    const drive = ways[name]();
    for (const again of [connect('open'), reconnect(), reconnect('none')]) {
      const before = drive.link;
      expect(drive.asks(again).did).toBe('settle fresh');
      expect(drive.link).toBe(before);
    }
    expect(ways.restoring().hears(healthy).asks(reconnect()).did).toBe('settle back');
  });

  test.each(names.filter(name => name !== 'taken-over'))('%s: close ends it', name => {
    const drive = ways[name]().asks(close);
    expect(drive.link.state).toEqual({ name: 'closed' });
    expect(drive.did).toBe('shut, settle left, release');
    const { state, reason, message, retryAt } = drive.status;
    expect({ state, reason, message, retryAt }).toEqual({ state: 'disconnected' });
  });

  test('taken over: close leaves it known that another tab has gone on', () => {
    expect(ways['taken-over']().asks(close)).toMatchObject({ did: '', link: { state: { name: 'taken-over' } } });
  });

  test.each(names.filter(name => name !== 'closed'))('%s: another tab may take it', name => {
    const drive = ways[name]().asks(seized);
    expect(drive.link.state).toEqual({ name: 'taken-over' });
    expect(drive.did).toBe('shut, settle left, leave');
    expect(drive.status).toMatchObject({ state: 'disconnected', reason: 'taken-over', retryAt: undefined });
  });

  test('closed: there is nothing that another tab could take', () => {
    expect(ways.closed().asks(seized)).toMatchObject({ did: '', link: unlinked });
  });
});

describe('what comes too late', () => {
  test.each(names)('%s: nobody listens to an attempt that was given up', name => {
    const { link } = ways[name]();
    for (const told of everything) expect(step(link, { turn: link.turn - 1, ...told })).toEqual([link]);
  });

  test.each(names.filter(name => name !== 'closed'))('%s: nor, closed and asked again, to the one before', name => {
    const drive = ways[name]();
    const { turn } = drive.link;
    for (const again of [connect(), reconnect(), reconnect('locked')]) {
      const { link } = new Drive(drive.link).asks(close, again);
      for (const told of everything) expect(step(link, { turn, ...told })).toEqual([link]);
    }
  });

  /** Which of `everything` means something in a state. Of the rest, each leaves it as it is. */
  const heard: Record<LinkState['name'], Told[]> = {
    closed: [],
    'taken-over': [],
    authorizing: [],
    refused: [],
    checking: [found, notFound, failed],
    claiming: [granted, foreign, replaced],
    restoring: [failed, gone, unauthorized, troubled, healthy],
    beginning: [begun, failed, gone, unauthorized, troubled],
    pausing: [paused],
    connected: [gone, unauthorized, troubled],
    cut: [gone, unauthorized, troubled, healthy],
  };
  test.each(names)('%s: what does not belong there changes nothing', name => {
    for (const told of everything.filter(each => each !== recovered && !heard[name].includes(each))) {
      const drive = ways[name]();
      const { link } = drive;
      drive.hears(told);
      expect(drive.link, told.type).toBe(link);
      expect(drive.did, told.type).toBe('');
    }
    for (const told of heard[name]) {
      const drive = ways[name]();
      const { link } = drive;
      expect(drive.hears({ ...told, retryAt: 99 } as Told).link.state, told.type).not.toEqual(link.state);
    }
  });
});

describe('the stored session', () => {
  test('with a login it is claimed, without one it is over', () => {
    expect(ways.checking().hears(found)).toMatchObject({ did: 'claim', link: { state: { name: 'claiming' } } });
    expect(ways.checking().hears(notFound)).toMatchObject({ did: 'end, settle none', link: { state: { name: 'closed' } } });
  });

  test('a look for a login that fails costs nothing, and is told', () => {
    const drive = ways.authorizing().asks(reconnect('locked')).hears(failed);
    expect(drive.link.state).toEqual({ name: 'authorizing' });
    expect(drive.actions).toEqual([{ type: 'settle', outcome: { type: 'refused', error, isExpired: false } }]);
  });

  test('that is another page’s is left to it; one that was replaced is over', () => {
    expect(ways.claiming().hears(foreign)).toMatchObject({ did: 'forget, shut, begin', status: { state: 'connecting' } });
    expect(ways.claiming().hears(replaced)).toMatchObject({ did: 'end, shut, begin', status: { state: 'connecting' } });
    expect(ways.claiming().hears(foreign).link.state).toMatchObject({ mayRedirect: false });
    expect(ways['taken-over']().asks(connect('open')).hears(replaced).link.state).toMatchObject({ mayRedirect: true });
  });

  test('is back when the server answers', () => {
    const drive = ways.claiming().hears(granted);
    expect(drive.did).toBe('restore');
    expect(drive.hears(healthy).did).toBe('settle back');
    expect(drive.status).toMatchObject({ state: 'connected', reason: undefined, wasReconnected: true });
    expect(drive.hears(recovered).asks(close).status, 'until it is asked for again').toMatchObject({ wasReconnected: true, recovered: 3 });
    expect(drive.asks(reconnect()).status).toMatchObject({ state: 'reconnecting', wasReconnected: false, recovered: 0 });
  });

  test.each([gone, failed])('that the server or the official client does not know ($type) is replaced', told => {
    const drive = ways.restoring().hears(told);
    expect(drive.did).toBe('end, shut, begin');
    expect(drive.link.state).toMatchObject({ name: 'beginning', isExpired: true, mayRedirect: false });
    expect(drive.hears(begun)).toMatchObject({ did: 'settle fresh', status: { state: 'connected', reason: 'session-expired' } });
  });

  test('that is refused a login leads to one only if the user asked to connect', () => {
    expect(ways.restoring().hears(unauthorized)).toMatchObject({ did: 'shut, settle left', link: { state: { name: 'authorizing' } } });
    const back = ways['taken-over']().asks(connect('open')).hears(granted, unauthorized);
    expect(back).toMatchObject({ did: 'end, shut, begin', link: { state: { name: 'beginning', mayRedirect: true } } });
    expect(ways['taken-over']().asks(connect('open')).hears(granted, gone).link.state).toMatchObject({ mayRedirect: true });
  });
});

describe('a new session', () => {
  test('is there with the end of the handshake', () => {
    const drive = ways.beginning().hears(begun);
    expect(drive).toMatchObject({ did: 'settle fresh', status: { state: 'connected', wasReconnected: false } });
  });

  test('that is gone during its handshake is tried again, after longer and longer pauses', () => {
    const drive = ways.beginning();
    for (const attempt of [0, 1, 2]) {
      expect(drive.hears(gone).did).toBe('');
      expect(drive.hears(failed).actions).toEqual([{ type: 'pause', attempt }]);
      expect(drive.status.state).toBe('connecting');
      expect(drive.hears(paused).did).toBe('shut, begin');
    }
    expect(drive.link.state).toMatchObject({ name: 'beginning', attempt: 3, mayRedirect: true });
    expect(drive.hears(failed).link.state.name).toBe('refused');
  });

  test('that is refused is told with the reason', () => {
    const drive = ways.beginning().hears(failed);
    expect(drive.actions).toEqual([{ type: 'shut' }, { type: 'settle', outcome: { type: 'refused', error, isExpired: false } }]);
    expect(drive.status).toMatchObject({ state: 'error', reason: 'refused', message: 'The server refused: no' });
    const expired = ways.connected().hears(gone, failed);
    expect(expired.actions.at(-1)).toMatchObject({ outcome: { type: 'refused', isExpired: true } });
  });

  test('that wants a login waits for the user', () => {
    const drive = ways.beginning().hears(unauthorized);
    expect(drive).toMatchObject({ did: '', status: { state: 'connecting' } });
    expect(drive.hears(failed)).toMatchObject({ did: 'shut, settle refused', status: { state: 'authorizing', reason: 'unauthorized' } });
  });

  test('that is done in spite of what was said of it is there', () => {
    for (const verdict of [gone, unauthorized]) expect(ways.beginning().hears(verdict, begun).status.state).toBe('connected');
  });
});

describe('a connection', () => {
  test('that is cut comes back by itself', () => {
    const drive = ways.connected().hears(recovered, troubled);
    expect(drive).toMatchObject({ did: '', status: { state: 'reconnecting', recovered: 0, retryAt: 5 } });
    expect(drive.hears(recovered, recovered, offline).status).toMatchObject({ reason: 'offline', recovered: 6, retryAt: 7 });
    expect(drive.hears(healthy)).toMatchObject({ did: '', status: { state: 'connected', wasReconnected: true, recovered: 6 } });
    expect(drive.status).toMatchObject({ reason: undefined, message: undefined, retryAt: undefined });
  });

  test('without a session has nothing to come back to', () => {
    const drive = ways.beginning().hears(begunWithout, troubled);
    expect(drive.status.state).toBe('connecting');
    expect(drive.hears(healthy).status).toMatchObject({ state: 'connected', wasReconnected: false });
  });

  test.each(['connected', 'cut'] as const)('%s: a session that is gone is replaced, and a login waits for the user', name => {
    const drive = ways[name]().hears(recovered, gone);
    expect(drive.did).toBe('end, shut, begin');
    expect(drive.status).toEqual({
      state: 'reconnecting', reason: 'session-expired', message: 'Session expired, reconnecting…', wasReconnected: false, recovered: 0,
    });
    expect(drive.link.state).toMatchObject({ mayRedirect: false });
    expect(ways[name]().hears(unauthorized)).toMatchObject({ did: 'shut, settle left', status: { state: 'authorizing' } });
  });

  test('says that its session is a new one until it is cut', () => {
    const drive = ways.connected().hears(gone, begun);
    expect(drive.status).toMatchObject({ state: 'connected', reason: 'session-expired', message: undefined });
    expect(drive.hears(troubled, healthy).status).toMatchObject({ state: 'connected', reason: undefined, wasReconnected: true });
  });
});

describe('what is seen', () => {
  const seen = (drive: Drive): string => [drive.status.state, drive.status.reason, drive.status.message].filter(Boolean).join(' | ');
  test.each<[string, string, Drive]>([
    ['closed', 'disconnected', ways.closed()],
    ['taken over', 'disconnected | taken-over | Taken over by another tab. Connect to take it back.', ways['taken-over']()],
    ['authorizing', 'authorizing | unauthorized | The server wants a login. Connect to log in.', ways.authorizing()],
    ['refused', 'error | refused | The server refused: no', ways.refused()],
    ['checking', 'disconnected', ways.checking()],
    ['checking after a refusal', 'error | refused | The server refused: no', ways.refused().asks(reconnect('locked'))],
    ['claiming', 'reconnecting | Reconnecting…', ways.claiming()],
    ['restoring', 'reconnecting | Reconnecting…', ways.restoring()],
    ['restoring, offline', 'reconnecting | offline | There is no network. Waiting for it…', ways.restoring().hears(offline)],
    ['beginning', `connecting | Connecting to ${URL}…`, ways.beginning()],
    ['beginning, troubled', `connecting | unreachable | No answer from ${URL}. Trying again…`, ways.beginning().hears(troubled)],
    ['beginning, expired and troubled twice', `reconnecting | unreachable | No answer from ${URL}. Trying again…`, ways.cut().hears(gone, troubled, troubled)],
    ['pausing', `connecting | Connecting to ${URL}…`, ways.pausing()],
    ['connected', 'connected', ways.connected()],
    ['cut', `reconnecting | unreachable | No answer from ${URL}. Trying again…`, ways.cut()],
  ])('%s: %s', (_, text, drive) => expect(seen(drive)).toBe(text));
});
