import { anything, object, optional, text, type Shaped } from 'belay-client/shapes';
import { useMemo, useState } from 'react';
import { usePersisted } from '../storage';
import { afterPress } from './after_press';
import { draftOf, emptyDraft, fittingDraft, valueOf, type Draft, type Problems } from './draft';
import { formOf, type ObjectField } from './fields';
import { isRecord } from './schema';

/** What is kept across a reload: the fields, or the JSON that is written instead of them. */
interface Stored {
  draft: Draft;
  json?: string;
}
/** The draft has to fit its form besides, which may not be the one of the last page load. */
const storedShape = object({ draft: anything, json: optional(text) });

export interface FormState {
  readonly form: ObjectField;
  readonly draft: Draft;
  setDraft(draft: Draft): void;
  /** Those of fields that were left, or all after a try to submit. */
  readonly problems: Problems;
  /** Shows the problems of a field from now on. */
  touch(path: string): void;
  /** The text, while the whole is written as JSON. */
  readonly json: string | undefined;
  readonly jsonProblem: string | undefined;
  setJson(text: string): void;
  /** To JSON, or back if it can be read. */
  toggleJson(): void;
  reset(): void;
  /** The value, or undefined if something is wrong; then it is shown. */
  submit(): Record<string, unknown> | undefined;
}

export function useForm(schema: unknown, storageKey: string): FormState {
  const form = useMemo(() => formOf(schema), [schema]);
  const [found, setStored] = usePersisted<Shaped<typeof storedShape>>(storageKey, storedShape, () => ({
    draft: emptyDraft(form),
  }));
  const stored: Stored = useMemo(() => ({ draft: fittingDraft(form, found.draft), json: found.json }), [form, found]);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [submitted, setSubmitted] = useState(false);

  const { value, problems } = useMemo(() => valueOf(form, stored.draft), [form, stored.draft]);
  const shown = useMemo(
    () => (submitted ? problems : new Map([...problems].filter(([path]) => touched.has(path)))),
    [problems, touched, submitted],
  );
  const fromJson = useMemo(() => (stored.json === undefined ? undefined : parseObject(stored.json)), [stored.json]);

  return {
    form,
    draft: stored.draft,
    setDraft: draft => setStored({ draft }),
    problems: shown,
    touch: path => afterPress(() => setTouched(old => (old.has(path) ? old : new Set([...old, path])))),
    json: stored.json,
    jsonProblem: fromJson?.problem,
    setJson: json => setStored({ draft: stored.draft, json }),
    toggleJson: () => {
      if (stored.json === undefined) setStored({ draft: stored.draft, json: JSON.stringify(value, null, 2) });
      else if (fromJson?.value) setStored({ draft: draftOf(form, fromJson.value) });
    },
    reset: () => {
      setStored({ draft: emptyDraft(form) });
      setTouched(new Set());
      setSubmitted(false);
    },
    submit: () => {
      setSubmitted(true);
      if (fromJson) return fromJson.value;
      return problems.size === 0 ? (value as Record<string, unknown>) : undefined;
    },
  };
}

function parseObject(text: string): { value?: Record<string, unknown>; problem?: string } {
  try {
    const value: unknown = JSON.parse(text.trim() || '{}');
    return isRecord(value) ? { value } : { problem: 'Write an object: { … }' };
  } catch (error) {
    return { problem: `Not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
