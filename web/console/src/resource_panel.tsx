import {
  UriTemplate,
  type ReadResourceResult,
  type Resource,
  type ResourceTemplateType,
} from '@modelcontextprotocol/client';
import { recordOf, text } from 'belay-client/shapes';
import { useMcpClient } from 'belay-react';
import { useCallback, useEffect, useMemo, useState, type FormEvent } from 'react';
import { CompletedInput } from './completed_input';
import { ResourceBody } from './content';
import { messageOf, ownValue } from './format';
import { BellIcon } from './icons';
import { Panel } from './panel';
import { usePersisted } from './storage';
import type { Subscriptions } from './subscriptions';

interface Props {
  uri: string;
  resource: Resource | undefined;
  subscriptions: Subscriptions;
  onClose(): void;
}

export function ResourcePanel({ uri, resource, subscriptions, onClose }: Props) {
  return (
    <Panel title={resource?.title ?? resource?.name ?? uri} text={resource?.description} onClose={onClose}>
      <Reader uri={uri} subscriptions={subscriptions} />
    </Panel>
  );
}

interface TemplateProps {
  template: ResourceTemplateType;
  subscriptions: Subscriptions;
  onClose(): void;
}

const valuesShape = recordOf(text);

/** A form of the template's variables; reads what they make. */
export function TemplatePanel({ template, subscriptions, onClose }: TemplateProps) {
  const parsed = useMemo(() => new UriTemplate(template.uriTemplate), [template.uriTemplate]);
  const [values, setValues] = usePersisted<Record<string, string>>(`template:${template.uriTemplate}`, valuesShape, () => ({}));
  const [uri, setUri] = useState<string>();
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    setUri(parsed.expand(values));
  };
  return (
    <Panel title={template.title ?? template.name} text={template.description} onClose={onClose}>
      <p className="mono quiet">{template.uriTemplate}</p>
      <form className="tool-form" onSubmit={onSubmit} aria-label="Variables">
        <div className="fields">
          {parsed.variableNames.map(name => (
            <CompletedInput
              key={name}
              name={name}
              value={ownValue(values, name) ?? ''}
              onValue={value => setValues({ ...values, [name]: value })}
              from={{ type: 'ref/resource', uri: template.uriTemplate }}
              others={values}
            />
          ))}
        </div>
        <div className="actions">
          <button type="submit" className="button primary">
            Read
          </button>
        </div>
      </form>
      {uri !== undefined && <Reader key={uri} uri={uri} subscriptions={subscriptions} />}
    </Panel>
  );
}

/** Reads at once, and again when the server says that it changed or when asked to. */
function Reader({ uri, subscriptions }: { uri: string; subscriptions: Subscriptions }) {
  const { client, status } = useMcpClient();
  const [result, setResult] = useState<ReadResourceResult>();
  const [error, setError] = useState<string>();
  const [refusal, setRefusal] = useState<string>();
  const connected = status.state === 'connected';
  const isSubscribed = subscriptions.uris.has(uri);
  const isPending = subscriptions.pending.has(uri);
  const isUpdated = subscriptions.updated.has(uri);
  const canSubscribe = client.client.getServerCapabilities()?.resources?.subscribe === true;
  const { markRead } = subscriptions;

  const read = useCallback(async () => {
    try {
      const next = await client.client.readResource({ uri }, { cacheMode: 'refresh' });
      setResult(next);
      setError(undefined);
      markRead(uri);
    } catch (reason) {
      setError(messageOf(reason));
    }
  }, [client, uri, markRead]);
  useEffect(() => {
    if (connected) void read();
  }, [connected, read]);

  return (
    <div className="reader">
      <div className="actions">
        <button type="button" className="button small" onClick={() => void read()} disabled={!connected}>
          Read again
        </button>
        {canSubscribe && (
          <button
            type="button"
            className="button small"
            aria-pressed={isSubscribed}
            disabled={!connected || isPending}
            onClick={() => {
              setRefusal(undefined);
              subscriptions.toggle(uri).catch(reason => setRefusal(messageOf(reason)));
            }}
          >
            <BellIcon />
            {isSubscribed ? 'Unsubscribe' : isPending ? 'Subscribing…' : 'Subscribe'}
          </button>
        )}
        {isUpdated && <span className="mark">updated since it was read</span>}
      </div>
      {refusal && <p className="result-note bad">The subscription was not changed: {refusal}</p>}
      {error && <p className="result-note bad">It could not be read: {error}</p>}
      {result?.contents.map((contents, index) => (
        <ResourceBody key={index} contents={contents} />
      ))}
      {!result && !error && <p className="quiet">Reading…</p>}
    </div>
  );
}
