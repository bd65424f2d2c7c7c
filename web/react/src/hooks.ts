import type { BelayClient, Call, CallOptions, Status } from 'belay-client';
import { useCallback, useContext, useMemo, useSyncExternalStore } from 'react';
import { perFrame } from './frames.js';
import { McpContext } from './provider.js';

/** What `useMcpClient()` gives. The functions stay the same for the life of the provider. */
export interface McpClient {
  readonly client: BelayClient;
  readonly status: Status;
  /** Oldest first. */
  readonly calls: readonly Call[];
  connect(serverUrl?: string | URL): Promise<void>;
  reconnect(serverUrl?: string | URL): Promise<boolean>;
  disconnect(options?: { clearSession?: boolean }): Promise<void>;
  callTool(name: string, args?: Record<string, unknown>, options?: CallOptions): Call;
  forget(call: Call): void;
  retryNow(): void;
  pullPlug(ms?: number): void;
}

/** The client of the nearest `McpProvider`. Renders again when its status or its list of calls changes. */
export function useMcpClient(): McpClient {
  const client = useContext(McpContext);
  if (!client) throw new Error('useMcpClient: put an <McpProvider> around this component');

  const subscribe = useCallback((listener: () => void) => client.subscribe(listener), [client]);
  const getStatus = () => client.status;
  const getCalls = () => client.calls();
  const status = useSyncExternalStore(subscribe, getStatus, getStatus);
  const calls = useSyncExternalStore(subscribe, getCalls, getCalls);

  const actions = useMemo(
    () => ({
      connect: client.connect.bind(client),
      reconnect: client.reconnect.bind(client),
      disconnect: client.disconnect.bind(client),
      callTool: client.callTool.bind(client),
      forget: client.forget.bind(client),
      retryNow: client.retryNow.bind(client),
      pullPlug: client.pullPlug.bind(client),
    }),
    [client],
  );
  return useMemo(() => ({ client, status, calls, ...actions }), [client, status, calls, actions]);
}

/** Renders again when the call changes, at most once per frame. Gives back the call, to read. */
export function useCall(call: Call): Call {
  const subscribe = useCallback(
    (listener: () => void) => {
      const { tell, stop } = perFrame(listener);
      const unsubscribe = call.subscribe(tell);
      return () => {
        unsubscribe();
        stop();
      };
    },
    [call],
  );
  const getVersion = () => call.version;
  useSyncExternalStore(subscribe, getVersion, getVersion);
  return call;
}
