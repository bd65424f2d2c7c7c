import type { GetPromptResult, Prompt } from '@modelcontextprotocol/client';
import { recordOf, text } from 'belay-client/shapes';
import { useMcpClient } from 'belay-react';
import { useState, type FormEvent } from 'react';
import { CompletedInput } from './completed_input';
import { Content } from './content';
import { messageOf, ownValue } from './format';
import { Panel } from './panel';
import { usePersisted } from './storage';

const valuesShape = recordOf(text);

export function PromptPanel({ prompt, onClose }: { prompt: Prompt; onClose(): void }) {
  const { client, status } = useMcpClient();
  const [values, setValues] = usePersisted<Record<string, string>>(`prompt:${prompt.name}`, valuesShape, () => ({}));
  const [result, setResult] = useState<GetPromptResult>();
  const [error, setError] = useState<string>();

  const get = async () => {
    const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));
    try {
      setResult(await client.client.getPrompt({ name: prompt.name, arguments: given }));
      setError(undefined);
    } catch (reason) {
      setError(messageOf(reason));
    }
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    void get();
  };
  return (
    <Panel title={prompt.name} subtitle={prompt.title} text={prompt.description} onClose={onClose}>
      <form className="tool-form" onSubmit={onSubmit} aria-label="Arguments">
        <div className="fields">
          {prompt.arguments?.map(({ name, description, required }) => (
            <CompletedInput
              key={name}
              name={name}
              description={description}
              required={required ?? false}
              value={ownValue(values, name) ?? ''}
              onValue={value => setValues({ ...values, [name]: value })}
              from={{ type: 'ref/prompt', name: prompt.name }}
              others={values}
            />
          ))}
        </div>
        <div className="actions">
          <button type="submit" className="button primary" disabled={status.state !== 'connected'}>
            Get prompt
          </button>
        </div>
      </form>
      {error && <p className="result-note bad">It could not be had: {error}</p>}
      {result && (
        <section className="messages" aria-label="Messages">
          {result.description && <p className="quiet">{result.description}</p>}
          {result.messages.map((message, index) => (
            <div key={index} className={`message ${message.role}`}>
              <p className="message-role">{message.role}</p>
              <Content block={message.content} />
            </div>
          ))}
        </section>
      )}
    </Panel>
  );
}
