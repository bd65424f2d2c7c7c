import { useMcpClient } from 'belay-react';
import { useEffect, useState } from 'react';
import { RemoveIcon, WarnIcon } from './icons';

/** Tells what a change of the connection meant for what was here. */
export function Notice() {
  const { status } = useMcpClient();
  const [closed, setClosed] = useState(false);
  useEffect(() => setClosed(false), [status.reason]);
  const text = textOf(status.reason);
  if (!text || closed) return null;
  return (
    <div className="notice">
      <WarnIcon />
      <p>{text}</p>
      <button type="button" className="icon-button" aria-label="Close notice" onClick={() => setClosed(true)}>
        <RemoveIcon />
      </button>
    </div>
  );
}

function textOf(reason: ReturnType<typeof useMcpClient>['status']['reason']): string | undefined {
  switch (reason) {
    case 'session-expired':
      return 'The server no longer knew the session, so a new one was opened. Calls that were running are marked as lost.';
    case 'taken-over':
      return 'Another tab uses this session now. Connect to take it back.';
    case 'unauthorized':
      return 'The server wants a login that this page cannot give.';
    default:
      return undefined;
  }
}
