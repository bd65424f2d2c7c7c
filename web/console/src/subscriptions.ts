// The resources this page listens to. The server keeps them with the session; the page keeps them across sessions.
import { listOf, text } from 'belay-client/shapes';
import { useMcpClient } from 'belay-react';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { load, save } from './storage';

const urisShape = listOf(text);

/** A server may ask a person before it says yes. */
const timeout = 15 * 60_000;

export interface Subscriptions {
  readonly uris: ReadonlySet<string>;
  /** Those that the server has not answered for yet. */
  readonly pending: ReadonlySet<string>;
  /** Those that changed since they were read. */
  readonly updated: ReadonlySet<string>;
  toggle(uri: string): Promise<void>;
  markRead(uri: string): void;
}

export function useSubscriptions(): Subscriptions {
  const { client, status } = useMcpClient();
  const [uris, setUris] = useState<ReadonlySet<string>>(() => new Set(load('subscriptions', urisShape)));
  const [pending, setPending] = useState<ReadonlySet<string>>(new Set());
  const [updated, setUpdated] = useState<ReadonlySet<string>>(() => new Set(load('updated', urisShape)));
  useEffect(() => save('subscriptions', [...uris]), [uris]);
  useEffect(() => save('updated', [...updated]), [updated]);

  useEffect(
    () =>
      client.onnotification(({ method, params }) => {
        const uri = params?.['uri'];
        if (method !== 'notifications/resources/updated' || typeof uri !== 'string') return;
        setUpdated(old => new Set([...old, uri]));
      }),
    [client],
  );

  // A new session knows of none.
  const latest = useRef(uris);
  latest.current = uris;
  const isFresh = status.state === 'connected' && !status.wasReconnected;
  const { sessionId } = client;
  useEffect(() => {
    if (!isFresh) return;
    for (const uri of latest.current) {
      client.client.subscribeResource({ uri }, { timeout }).catch(() => setUris(old => without(old, uri)));
    }
  }, [client, isFresh, sessionId]);

  const toggle = useCallback(
    async (uri: string) => {
      setPending(old => new Set([...old, uri]));
      try {
        if (latest.current.has(uri)) {
          await client.client.unsubscribeResource({ uri });
          setUris(old => without(old, uri));
        } else {
          await client.client.subscribeResource({ uri }, { timeout });
          setUris(old => new Set([...old, uri]));
        }
      } finally {
        setPending(old => without(old, uri));
      }
    },
    [client],
  );
  const markRead = useCallback((uri: string) => setUpdated(old => (old.has(uri) ? without(old, uri) : old)), []);
  return useMemo(
    () => ({ uris, pending, updated, toggle, markRead }),
    [uris, pending, updated, toggle, markRead],
  );
}

function without(set: ReadonlySet<string>, uri: string): ReadonlySet<string> {
  return new Set([...set].filter(each => each !== uri));
}
