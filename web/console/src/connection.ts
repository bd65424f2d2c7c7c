import type { Status } from 'belay-client';
import { useMcpClient } from 'belay-react';

/**
 * The client's status; before it began to go back to its session, as if it did: a page that was reloaded was not
 * disconnected. After an explicit disconnect there is no session, and one that another tab took has a reason.
 */
export function useConnection(): Status {
  const { client, status } = useMcpClient();
  const isWaiting = status.state === 'disconnected' && !status.reason && client.hasSession;
  return isWaiting ? { ...status, state: 'reconnecting' } : status;
}
