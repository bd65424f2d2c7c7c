import type { Status } from 'belay-client';
import { object, optional, text } from 'belay-client/shapes';
import { useMcpClient } from 'belay-react';
import { useEffect, useState } from 'react';
import { useConnection } from './connection';
import { CopyButton } from './content';
import { Logo, PlugIcon } from './icons';
import { drop, load, save, useNow } from './storage';
import type { Timeline } from './timeline';

/** How long the page says that something was recovered, that it is connected again, or that the session had expired. */
const RECOVERED_FOR = 8000;
const RECONNECTED_FOR = 3000;
const EXPIRED_FOR = 3000;

export function Header({ timeline }: { timeline: Timeline }) {
  const { client, connect, reconnect, disconnect, retryNow, pullPlug } = useMcpClient();
  const status = useConnection();
  // A session that another tab took can be taken back.
  const connectAgain = async () => {
    if (!client.hasSession || !(await reconnect())) await connect();
  };
  // What the calls of the session told does not outlive it, nor do answers that were begun.
  const forget = () => {
    timeline.forgetStored();
    drop('answer:');
  };
  const leave = async () => {
    forget();
    await disconnect();
    forget();
  };
  const isOff = status.state === 'disconnected' || status.state === 'error';
  const server = useServerName();
  // The whole of it: people paste it into other clients.
  const address = new URL(client.serverUrl ?? '/mcp', location.href).href;
  return (
    <header className="header">
      <Logo />
      <div className="header-name">
        <h1>{server.name}</h1>
        <p className="header-address">
          {server.version && <span className="wide-only">{server.version} ·</span>}
          <span className="header-url" title={address}>
            {address}
          </span>
          <CopyButton text={address} label="Copy address" />
        </p>
      </div>
      <StatusPill status={status} />
      <Retry status={status} onRetry={retryNow} />
      <span className="spring" />
      <div className="header-actions">
        <button
          type="button"
          className="button"
          disabled={status.state !== 'connected'}
          onClick={() => pullPlug()}
          aria-label="Pull the plug"
          title="Drops this page's connections for three seconds, to see what happens"
        >
          <PlugIcon />
          <span className="wide-only">Pull the plug</span>
        </button>
        {isOff ? (
          <button type="button" className="button primary" onClick={() => void connectAgain().catch(() => undefined)}>
            Connect
          </button>
        ) : (
          <button type="button" className="button" onClick={() => void leave()}>
            Disconnect
          </button>
        )}
      </div>
    </header>
  );
}

const serverShape = object({ name: text, version: optional(text) });

/** Known from the last page load until the server says it again. */
function useServerName(): { name: string; version?: string } {
  const { client } = useMcpClient();
  const told = client.client.getServerVersion();
  const name = told?.title ?? told?.name;
  const version = told?.version;
  useEffect(() => {
    if (name) save('server', { name, version });
  }, [name, version]);
  useEffect(() => {
    if (name) document.title = `${name} · Belay console`;
  }, [name]);
  return name ? { name, version } : (load('server', serverShape) ?? { name: 'Belay console' });
}

function StatusPill({ status }: { status: Status }) {
  const passed = usePassed(status);
  const { text, tone } = describe(status, passed);
  return (
    <div className={`status ${tone}`}>
      <span className="status-dot" />
      <span role="status" title={status.message}>
        {text}
      </span>
    </div>
  );
}

/** Milliseconds since the last reconnect's news, at least as exact as the texts below need. */
function usePassed(status: Status): number {
  const news = `${status.state} ${status.recovered} ${status.reason}`;
  const [last, setLast] = useState(() => ({ news, at: Date.now() }));
  // While it renders: the text of a moment that is over is not shown first.
  if (last.news !== news) setLast({ news, at: Date.now() });
  const now = useNow(500, status.state === 'connected' && Date.now() - last.at < RECOVERED_FOR + 1000);
  return Math.max(0, now - last.at);
}

type Tone = 'good' | 'busy' | 'bad' | 'off' | 'news';

function describe(status: Status, passed: number): { text: string; tone: Tone } {
  switch (status.state) {
    case 'connected':
      if (status.reason === 'session-expired' && passed < EXPIRED_FOR) {
        return { text: 'Session expired, reconnecting…', tone: 'busy' };
      }
      if (status.recovered > 0 && passed < RECOVERED_FOR) {
        const what = status.recovered === 1 ? 'missed notification' : 'missed notifications';
        return { text: `Recovered ${status.recovered} ${what}`, tone: 'news' };
      }
      if (status.wasReconnected && status.recovered === 0 && passed < RECONNECTED_FOR) {
        return { text: 'Reconnected', tone: 'news' };
      }
      return { text: 'Connected', tone: 'good' };
    case 'connecting':
      return {
        text: status.reason === 'session-expired' ? 'Session expired, reconnecting…' : 'Connecting…',
        tone: 'busy',
      };
    case 'reconnecting':
      return {
        text: status.reason === 'session-expired' ? 'Session expired, reconnecting…' : 'Reconnecting…',
        tone: 'busy',
      };
    case 'authorizing':
      return { text: 'Signing in…', tone: 'busy' };
    case 'error':
      return { text: status.message ?? 'The server refuses the connection', tone: 'bad' };
    case 'disconnected':
      return status.reason === 'taken-over'
        ? { text: 'Taken over by another tab', tone: 'off' }
        : { text: 'Disconnected', tone: 'off' };
  }
}

/** Beside the status, not in it: a live region that counts would be read aloud each second. */
function Retry({ status, onRetry }: { status: Status; onRetry(): void }) {
  const waits = status.retryAt !== undefined && (status.state === 'reconnecting' || status.state === 'connecting');
  const now = useNow(250, waits);
  if (!waits) return null;
  const seconds = Math.max(0, Math.ceil((status.retryAt! - now) / 1000));
  const why = status.reason === 'offline' ? 'No network' : 'No answer';
  return (
    <div className="retry">
      <span className="quiet">
        <span className="wide-only">{why}, next try </span>
        {seconds > 0 ? `in ${seconds} s` : 'now'}
      </span>
      <button type="button" className="button small" onClick={onRetry}>
        Retry now
      </button>
    </div>
  );
}
