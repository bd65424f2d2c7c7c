import type { PromptReference, ResourceTemplateReference } from '@modelcontextprotocol/client';
import { useMcpClient } from 'belay-react';
import { useEffect, useId, useState } from 'react';

const DELAY = 150;

interface Props {
  name: string;
  description?: string;
  required?: boolean;
  value: string;
  onValue(value: string): void;
  /** The prompt or template that the argument belongs to. */
  from: PromptReference | ResourceTemplateReference;
  /** The other arguments: what fits may depend on them. */
  others: Readonly<Record<string, string>>;
}

/** A text field for which the server suggests values. */
export function CompletedInput({ name, description, required = true, value, onValue, from, others }: Props) {
  const id = useId();
  const [isActive, setActive] = useState(false);
  const suggestions = useSuggestions({ name, value, from, others, isActive });
  return (
    <div className="field">
      <div className="field-head">
        <label htmlFor={id}>{name}</label>
        {!required && <span className="field-type">optional</span>}
      </div>
      <input
        id={id}
        list={`${id}-list`}
        autoComplete="off"
        required={required}
        value={value}
        onChange={event => onValue(event.target.value)}
        onFocus={() => setActive(true)}
        onBlur={() => setActive(false)}
        aria-describedby={description ? `${id}-help` : undefined}
      />
      <datalist id={`${id}-list`}>
        {suggestions.map(each => (
          <option key={each} value={each} />
        ))}
      </datalist>
      {description && (
        <p id={`${id}-help`} className="field-help">
          {description}
        </p>
      )}
    </div>
  );
}

type Asked = Pick<Props, 'name' | 'value' | 'from' | 'others'> & { isActive: boolean };

function useSuggestions({ name, value, from, others, isActive }: Asked): readonly string[] {
  const { client, status } = useMcpClient();
  const [values, setValues] = useState<readonly string[]>([]);
  const canAsk = status.state === 'connected' && client.client.getServerCapabilities()?.completions !== undefined;
  // By content, since these are made anew with each render.
  const about = JSON.stringify([from, others]);
  useEffect(() => {
    if (!isActive || !canAsk) return;
    const [ref, context] = JSON.parse(about) as [Props['from'], Record<string, string>];
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const { [name]: _, ...rest } = context;
      client.client
        .complete({ ref, argument: { name, value }, context: { arguments: rest } }, { signal: abort.signal })
        .then(({ completion }) => setValues([...new Set(completion.values)]))
        .catch(() => setValues([])); // The field works without suggestions.
    }, DELAY);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [client, canAsk, isActive, name, value, about]);
  return values;
}
