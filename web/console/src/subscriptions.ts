// The resources this page listens to. The server keeps them with the session; the page keeps them across sessions.
import { listOf, text } from 'belay-client/shapes';
import { useMcpClient } from 'belay-react';
import type { PendingRequest } from 'belay-client';
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
  const [pending, setPending] = useState<ReadonlySet<string>>(() => new Set(client.pending().flatMap(uriOf)));
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

  // What an earlier page load has asked for and the server has not answered yet.
  useEffect(() => {
    let isGone = false;
    for (const request of client.pending()) {
      const [uri] = uriOf(request);
      if (uri === undefined || !request.recovered) continue;
      const settle = (isSubscribed: boolean): void => {
        if (isGone) return;
        setPending(old => without(old, uri));
        if (isSubscribed) setUris(old => new Set([...old, uri]));
      };
      request.answer.then(
        () => settle(true),
        () => settle(false),
      );
    }
    return () => {
      isGone = true;
    };
  }, [client]);

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

/** The URI that a request subscribes to, if it does. */
function uriOf({ method, params }: PendingRequest): string[] {
  const { uri } = params;
  return method === 'resources/subscribe' && typeof uri === 'string' ? [uri] : [];
}

function without(set: ReadonlySet<string>, uri: string): ReadonlySet<string> {
  return new Set([...set].filter(each => each !== uri));
}
