// What the server offers: its lists, shown from storage at once and fetched anew with each session.
import { isSpecType, type Prompt, type Resource, type ResourceTemplateType, type Tool } from '@modelcontextprotocol/client';
import type { BelayClient } from 'belay-client';
import { anything, listOf, object, optional, text, type Shape } from 'belay-client/shapes';
import { useMcpClient } from 'belay-react';
import { useCallback, useEffect, useRef, useState } from 'react';
import { messageOf } from './format';
import { load, save } from './storage';

export interface Listed<T> {
  readonly items: readonly T[];
  readonly state: 'loading' | 'ready' | 'failed';
  readonly error?: string;
  /** More can be had. */
  readonly hasMore: boolean;
  more(): void;
  refresh(): void;
}

export interface Catalog {
  readonly tools: Listed<Tool>;
  readonly resources: Listed<Resource>;
  readonly templates: Listed<ResourceTemplateType>;
  readonly prompts: Listed<Prompt>;
}

interface Page<T> {
  items: T[];
  nextCursor?: string;
}
type Fetch<T> = (client: BelayClient['client'], cursor: string | undefined) => Promise<Page<T>>;

const fetchTools: Fetch<Tool> = async client => ({ items: (await client.listTools()).tools });
const fetchTemplates: Fetch<ResourceTemplateType> = async client => ({
  items: (await client.listResourceTemplates()).resourceTemplates,
});
const fetchPrompts: Fetch<Prompt> = async client => ({ items: (await client.listPrompts()).prompts });
// Page by page: there may be many.
const fetchResources: Fetch<Resource> = async (client, cursor) => {
  if (!client.getServerCapabilities()?.resources) return { items: [] };
  const { resources, nextCursor } = await client.request({ method: 'resources/list', params: { cursor } });
  return { items: resources, nextCursor };
};

function pageOf<T>(isItem: (value: unknown) => boolean): Shape<Page<T>> {
  const item = (value: unknown): value is T => anything(value) && isItem(value);
  return object({ items: listOf(item), nextCursor: optional(text) });
}
const toolPage = pageOf<Tool>(isSpecType.Tool);
const resourcePage = pageOf<Resource>(isSpecType.Resource);
const templatePage = pageOf<ResourceTemplateType>(isSpecType.ResourceTemplate);
const promptPage = pageOf<Prompt>(isSpecType.Prompt);

export function useCatalog(): Catalog {
  return {
    tools: useListed('tools', toolPage, fetchTools, 'notifications/tools/list_changed'),
    resources: useListed('resources', resourcePage, fetchResources, 'notifications/resources/list_changed'),
    templates: useListed('templates', templatePage, fetchTemplates, 'notifications/resources/list_changed'),
    prompts: useListed('prompts', promptPage, fetchPrompts, 'notifications/prompts/list_changed'),
  };
}

function useListed<T>(name: string, shape: Shape<Page<T>>, fetch: Fetch<T>, changed: string): Listed<T> {
  const { client, status } = useMcpClient();
  const key = `${name}:${client.serverUrl ?? ''}`;
  const [page, setPage] = useState<Page<T>>(() => load(key, shape) ?? { items: [] });
  const [state, setState] = useState<Listed<T>['state']>('loading');
  const [error, setError] = useState<string>();
  const newest = useRef(0);

  const run = useCallback(
    async (cursor: string | undefined, before: readonly T[]) => {
      const turn = ++newest.current;
      setState('loading');
      try {
        const got = await fetch(client.client, cursor);
        if (turn !== newest.current) return;
        const next = { ...got, items: [...before, ...got.items] };
        setPage(next);
        setState('ready');
        save(key, next);
      } catch (reason) {
        if (turn !== newest.current) return;
        setError(messageOf(reason));
        setState('failed');
      }
    },
    [client, fetch, key],
  );
  const refresh = useCallback(() => void run(undefined, []), [run]);

  const connected = status.state === 'connected';
  const { sessionId } = client;
  useEffect(() => {
    if (connected) refresh();
  }, [connected, sessionId, refresh]);
  useEffect(
    () => client.onnotification(notification => notification.method === changed && refresh()),
    [client, changed, refresh],
  );

  return {
    items: page.items,
    state,
    error,
    hasMore: page.nextCursor !== undefined,
    more: () => void run(page.nextCursor, page.items),
    refresh,
  };
}
