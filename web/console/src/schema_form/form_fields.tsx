import { useId, useRef, type ReactNode } from 'react';
import { ownValue } from '../format';
import { PlusIcon, RemoveIcon } from '../icons';
import { emptyDraft, type Draft, type Pair, type Problems } from './draft';
import type { ArrayField, ChoicesField, Field, MapField, ObjectField } from './fields';
import { isRecord } from './schema';
import type { FormState } from './use_form';

/** The fields of a form, or the JSON that is written instead of them. */
export function FormFields({ state }: { state: FormState }) {
  const id = useId();
  if (state.json !== undefined) {
    return (
      <div className="field">
        <div className="field-head">
          <label htmlFor={id}>JSON</label>
        </div>
        <textarea
          id={id}
          className="mono"
          rows={8}
          spellCheck={false}
          value={state.json}
          onChange={event => state.setJson(event.target.value)}
          aria-invalid={state.jsonProblem !== undefined}
          aria-describedby={`${id}-problem`}
        />
        <Problem id={`${id}-problem`} text={state.jsonProblem} />
      </div>
    );
  }
  return (
    <div className="fields">
      {state.form.fields.map(field => (
        <FieldView
          key={field.name}
          field={field}
          path={`/${field.name}`}
          draft={ownValue(state.draft as Record<string, Draft>, field.name)}
          onDraft={next => state.setDraft({ ...(state.draft as Record<string, Draft>), [field.name]: next })}
          problems={state.problems}
          onTouch={state.touch}
        />
      ))}
    </div>
  );
}

interface FieldProps<F extends Field = Field> {
  field: F;
  path: string;
  draft: Draft | undefined;
  onDraft(next: Draft): void;
  problems: Problems;
  onTouch(path: string): void;
}

function FieldView(props: FieldProps) {
  const { field } = props;
  switch (field.kind) {
    case 'object':
      return <ObjectView {...props} field={field} />;
    case 'array':
      return <ArrayView {...props} field={field} />;
    case 'map':
      return <MapView {...props} field={field} />;
    case 'choices':
      return <ChoicesView {...props} field={field} />;
    default:
      return <SimpleView {...props} />;
  }
}

function SimpleView({ field, path, draft, onDraft, problems, onTouch }: FieldProps) {
  const id = useId();
  const problem = problems.get(path);
  const common = {
    id,
    'aria-describedby': `${id}-help ${id}-problem`,
    'aria-invalid': problem !== undefined,
    'aria-required': field.required || undefined,
    onBlur: () => onTouch(path),
  };
  const text = typeof draft === 'string' ? draft : '';
  const onText = (event: { target: { value: string } }) => onDraft(event.target.value);

  let control: ReactNode;
  if (field.kind === 'boolean') {
    control = (
      <input
        {...common}
        className="switch"
        type="checkbox"
        checked={draft === true}
        onChange={event => onDraft(event.target.checked)}
        aria-required={undefined}
      />
    );
    return (
      <div className="field">
        <div className="field-row">
          {control}
          <FieldHead id={id} field={field} />
        </div>
        <Help id={`${id}-help`} field={field} />
        <Problem id={`${id}-problem`} text={problem} />
      </div>
    );
  }
  if (field.kind === 'choice') {
    control = (
      <select {...common} value={text} onChange={onText}>
        {(!field.required || text === '') && <option value="">{field.required ? 'Choose…' : 'Not set'}</option>}
        {field.choices.map((choice, index) => (
          <option key={index} value={String(index)}>
            {choice.label}
          </option>
        ))}
      </select>
    );
  } else if (field.kind === 'json' || (field.kind === 'text' && field.multiline)) {
    control = (
      <textarea
        {...common}
        className={field.kind === 'json' ? 'mono' : undefined}
        rows={field.kind === 'json' ? 4 : 3}
        spellCheck={field.kind === 'text'}
        value={text}
        onChange={onText}
        placeholder={field.kind === 'json' ? 'JSON' : undefined}
      />
    );
  } else {
    control = (
      <input
        {...common}
        type={inputType(field)}
        inputMode={field.kind === 'number' ? (field.integer ? 'numeric' : 'decimal') : undefined}
        autoComplete="off"
        value={text}
        onChange={onText}
        placeholder={field.schema.format === 'date-time' ? '2026-01-31T12:00:00Z' : undefined}
      />
    );
  }
  return (
    <div className="field">
      <FieldHead id={id} field={field} />
      {control}
      <Help id={`${id}-help`} field={field} />
      <Problem id={`${id}-problem`} text={problem} />
    </div>
  );
}

function inputType(field: Field): string {
  if (field.kind === 'number') return 'text';
  switch (field.schema.format) {
    case 'email':
      return 'email';
    case 'uri':
    case 'url':
      return 'url';
    case 'date':
      return 'date';
    case 'password':
      return 'password';
    default:
      return 'text';
  }
}

function ObjectView({ field, path, draft, onDraft, ...rest }: FieldProps<ObjectField>) {
  const values = isRecord(draft) ? (draft as Record<string, Draft>) : {};
  return (
    <Group field={field} problem={rest.problems.get(path)}>
      {field.fields.map(each => (
        <FieldView
          key={each.name}
          {...rest}
          field={each}
          path={`${path}/${each.name}`}
          draft={ownValue(values, each.name)}
          onDraft={next => onDraft({ ...values, [each.name]: next })}
        />
      ))}
    </Group>
  );
}

function ArrayView({ field, path, draft, onDraft, ...rest }: FieldProps<ArrayField>) {
  const items = Array.isArray(draft) ? (draft as Draft[]) : [];
  const add = useRef<HTMLButtonElement>(null);
  return (
    <Group field={field} problem={rest.problems.get(path)}>
      {items.map((item, index) => (
        <Removable
          key={index}
          name={`${field.name} ${index + 1}`}
          onRemove={() => {
            onDraft(items.filter((_, other) => other !== index));
            add.current?.focus();
          }}
        >
          <FieldView
            {...rest}
            field={field.item(index)}
            path={`${path}/${index}`}
            draft={item}
            onDraft={next => onDraft(items.map((old, other) => (other === index ? next : old)))}
          />
        </Removable>
      ))}
      <AddButton ref={add} onClick={() => onDraft([...items, emptyDraft(field.item(items.length))])} text="Add item" />
    </Group>
  );
}

function MapView({ field, path, draft, onDraft, ...rest }: FieldProps<MapField>) {
  const id = useId();
  const pairs = Array.isArray(draft) ? (draft as Pair[]) : [];
  const add = useRef<HTMLButtonElement>(null);
  const replace = (index: number, pair: Pair) => onDraft(pairs.map((old, other) => (other === index ? pair : old)));
  return (
    <Group field={field} problem={rest.problems.get(path)}>
      {pairs.map((pair, index) => {
        const keyId = `${id}-${index}`;
        const problem = rest.problems.get(`${path}/${index}/key`);
        return (
          <Removable
            key={index}
            name={pair.key || `entry ${index + 1}`}
            onRemove={() => {
              onDraft(pairs.filter((_, other) => other !== index));
              add.current?.focus();
            }}
          >
            <div className="field">
              <div className="field-head">
                <label htmlFor={keyId}>Key</label>
              </div>
              <input
                id={keyId}
                autoComplete="off"
                value={pair.key}
                onChange={event => replace(index, { ...pair, key: event.target.value })}
                onBlur={() => rest.onTouch(`${path}/${index}/key`)}
                aria-invalid={problem !== undefined}
                aria-describedby={`${keyId}-problem`}
              />
              <Problem id={`${keyId}-problem`} text={problem} />
            </div>
            <FieldView
              {...rest}
              field={field.value(pair.key || 'Value')}
              path={`${path}/${index}`}
              draft={pair.value}
              onDraft={value => replace(index, { ...pair, value })}
            />
          </Removable>
        );
      })}
      <AddButton
        ref={add}
        onClick={() => onDraft([...pairs, { key: '', value: emptyDraft(field.value('')) }])}
        text="Add entry"
      />
    </Group>
  );
}

function ChoicesView({ field, path, draft, onDraft, problems }: FieldProps<ChoicesField>) {
  const picked = new Set(Array.isArray(draft) ? (draft as string[]) : []);
  const toggle = (index: string) => {
    if (!picked.delete(index)) picked.add(index);
    onDraft([...picked].sort((a, b) => Number(a) - Number(b)));
  };
  return (
    <Group field={field} problem={problems.get(path)} flat>
      {field.choices.map((choice, index) => (
        <label key={index} className="choice">
          <input type="checkbox" checked={picked.has(String(index))} onChange={() => toggle(String(index))} />
          {choice.label}
        </label>
      ))}
    </Group>
  );
}

function Group(props: { field: Field; problem: string | undefined; flat?: boolean; children: ReactNode }) {
  const { field, problem, flat, children } = props;
  const id = useId();
  return (
    <fieldset className="group" aria-describedby={`${id}-help ${id}-problem`}>
      <legend>{field.name}</legend>
      <Help id={`${id}-help`} field={field} />
      <div className={flat ? 'choices' : 'group-body'}>{children}</div>
      <Problem id={`${id}-problem`} text={problem} />
    </fieldset>
  );
}

function Removable({ name, onRemove, children }: { name: string; onRemove(): void; children: ReactNode }) {
  return (
    <div className="removable">
      <div className="fields">{children}</div>
      <button type="button" className="icon-button" onClick={onRemove} aria-label={`Remove ${name}`}>
        <RemoveIcon />
      </button>
    </div>
  );
}

function AddButton({ ref, onClick, text }: { ref: React.Ref<HTMLButtonElement>; onClick(): void; text: string }) {
  return (
    <button ref={ref} type="button" className="button small" onClick={onClick}>
      <PlusIcon />
      {text}
    </button>
  );
}

function FieldHead({ id, field }: { id: string; field: Field }) {
  return (
    <div className="field-head">
      <label htmlFor={id}>{field.name}</label>
      <span className="field-type" title={hint(field)}>
        {hint(field)}
      </span>
    </div>
  );
}

/** The type and its limits, in a few words. */
function hint(field: Field): string {
  const { schema } = field;
  const words: string[] = [];
  if (field.kind === 'number') {
    words.push(field.integer ? 'integer' : 'number');
    const { minimum, maximum } = schema;
    if (minimum !== undefined && maximum !== undefined) words.push(`${minimum} to ${maximum}`);
    else if (minimum !== undefined) words.push(`from ${minimum}`);
    else if (maximum !== undefined) words.push(`up to ${maximum}`);
  } else if (field.kind === 'text') {
    words.push(schema.format ?? 'string');
  } else if (field.kind === 'json') {
    words.push('JSON');
  }
  if (!field.required) words.push('optional');
  return words.join(' · ');
}

function Help({ id, field }: { id: string; field: Field }) {
  const { title, description } = field.schema;
  const text = title && title !== field.name ? (description ? `${title}: ${description}` : title) : description;
  return text ? (
    <p id={id} className="field-help">
      {text}
    </p>
  ) : null;
}

function Problem({ id, text }: { id: string; text: string | undefined }) {
  return text ? (
    <p id={id} className="field-problem">
      {text}
    </p>
  ) : null;
}
