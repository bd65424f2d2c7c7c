import { BelayClient, type BelayClientOptions } from 'belay-client';
import { createContext, useEffect, useState, type ReactNode } from 'react';

export interface McpProviderProps {
  /** Read once, when the provider mounts. Give the provider another `key` to use others. */
  options: BelayClientOptions;
  /** Whether to connect when it mounts: the stored session, or a fresh one. Default: true. */
  autoStart?: boolean;
  children?: ReactNode;
}

export const McpContext = createContext<BelayClient | undefined>(undefined);

/** A client, how many mounted providers use it, and whether one of them started it. */
interface Shared {
  readonly client: BelayClient;
  users: number;
  started: boolean;
}

// By the options' identity. React may run a state initialiser twice and mount a component twice; a client per run would
// open a session per run.
const clients = new WeakMap<BelayClientOptions, Shared>();

function sharedFor(options: BelayClientOptions): Shared {
  let shared = clients.get(options);
  if (!shared) {
    shared = { client: new BelayClient(options), users: 0, started: false };
    clients.set(options, shared);
  }
  return shared;
}

/** Makes one client for the components below it. Unmounting closes its connections and keeps its session. */
export function McpProvider({ options, autoStart = true, children }: McpProviderProps) {
  const [shared] = useState(() => sharedFor(options));

  useEffect(() => {
    shared.users += 1;
    if (autoStart && !shared.started) {
      shared.started = true;
      // A refusal is told by the status.
      shared.client.start().catch(() => undefined);
    }
    return () => {
      shared.users -= 1;
      // Later, since StrictMode unmounts and mounts again at once.
      setTimeout(() => {
        if (shared.users > 0) return;
        shared.started = false;
        void shared.client.close();
      });
    };
  }, [shared, autoStart]);

  return <McpContext.Provider value={shared.client}>{children}</McpContext.Provider>;
}
