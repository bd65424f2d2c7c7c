import type { Tool } from '@modelcontextprotocol/client';
import type { FormEvent, KeyboardEvent } from 'react';
import { PlayIcon } from './icons';
import { Panel } from './panel';
import { FormFields } from './schema_form/form_fields';
import { useForm } from './schema_form/use_form';

interface Props {
  tool: Tool;
  /** Whether there is a server to run it. */
  canRun: boolean;
  onRun(args: Record<string, unknown>): void;
  onClose(): void;
}

export function ToolPanel({ tool, canRun, onRun, onClose }: Props) {
  const state = useForm(tool.inputSchema, `form:${tool.name}`);
  const hasFields = state.form.fields.length > 0 || state.json !== undefined;

  const run = () => {
    const args = state.submit();
    if (args && canRun) onRun(args);
  };
  const onSubmit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    run();
    // Once the problems are shown.
    requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run();
  };

  return (
    <Panel
      title={tool.name}
      subtitle={tool.title ?? tool.annotations?.title}
      text={tool.description}
      tags={hintsOf(tool)}
      onClose={onClose}
    >
      <form className="tool-form" noValidate onSubmit={onSubmit} onKeyDown={onKeyDown} aria-label="Arguments">
        {hasFields ? <FormFields state={state} /> : <p className="quiet">It takes no arguments.</p>}
        <div className="actions">
          <button type="submit" className="button primary" disabled={!canRun}>
            <PlayIcon />
            Run
          </button>
          {!canRun && <span className="quiet">Not connected</span>}
          <span className="spring" />
          {hasFields && (
            <button type="button" className="link-button" onClick={state.reset}>
              Reset
            </button>
          )}
          <button
            type="button"
            className="link-button"
            aria-pressed={state.json !== undefined}
            disabled={state.jsonProblem !== undefined}
            onClick={state.toggleJson}
          >
            {state.json === undefined ? 'Edit as JSON' : 'Back to fields'}
          </button>
        </div>
      </form>
    </Panel>
  );
}

/** What the server says of the tool's effects. */
function hintsOf(tool: Tool): string[] {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = tool.annotations ?? {};
  if (readOnlyHint) return openWorldHint ? ['read-only', 'open world'] : ['read-only'];
  return [destructiveHint && 'destructive', idempotentHint && 'idempotent', openWorldHint && 'open world'].filter(
    hint => typeof hint === 'string',
  );
}
