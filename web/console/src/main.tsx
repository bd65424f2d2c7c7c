import './zod_config';
import type { BelayClientOptions } from 'belay-client';
import { McpProvider } from 'belay-react';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app';
import { Questions } from './questions';
import './styles.css';
import { Timeline } from './timeline';

const parameters = new URLSearchParams(location.search);
const questions = new Questions();
const timeline = new Timeline();
const options: BelayClientOptions = {
  serverUrl: new URL(parameters.get('server') ?? '/mcp', location.href),
  clientInfo: { name: 'belay-console', title: 'Belay console', version: '0.1.0' },
  persistence: parameters.get('persistence') === 'browser' ? 'browser' : 'tab',
  elicitation: questions.elicitation,
  sampling: questions.sampling,
};

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <McpProvider options={options}>
      <App questions={questions} timeline={timeline} />
    </McpProvider>
  </StrictMode>,
);
