// [report]
import { McpProvider, useCall, useMcpClient } from 'belay-react';
import type { Call } from 'belay-client';

// Outside of the component: the provider reads the options once.
const options = { serverUrl: '/mcp' };

export function App() {
  return (
    <McpProvider options={options}>
      <Report />
    </McpProvider>
  );
}

function Report() {
  const { status, calls, callTool } = useMcpClient();
  return (
    <>
      <p role="status">{status.message ?? status.state}</p>
      <button onClick={() => callTool('longRunningOperation', { duration: 30, steps: 10 })}>Start</button>
      {calls.map((call) => (
        <Progress key={call.id} call={call} />
      ))}
    </>
  );
}

function Progress({ call }: { call: Call }) {
  const { tool, state, progress } = useCall(call);
  return (
    <p>
      {tool}: {state} <progress value={progress?.progress} max={progress?.total} />
      {state === 'running' && <button onClick={() => call.cancel()}>Cancel</button>}
    </p>
  );
}
// [report]
