import { useState } from 'react';
import { ChevronIcon } from './icons';
import { isRecord } from './schema_form/schema';

/** Members shown at first, and more at each click. */
const STEP = 100;
/** Text that is longer is cut until it is asked for. */
const LONG_TEXT = 400;

/** A JSON value whose objects and arrays open and close. Those down to `open` levels are open at first. */
export function JsonTree({ value, open = 1 }: { value: unknown; open?: number }) {
  return (
    <div className="json mono">
      <Node value={value} open={open} />
    </div>
  );
}

function Node({ name, value, open }: { name?: string; value: unknown; open: number }) {
  const [isOpen, setOpen] = useState(open > 0);
  const [shown, setShown] = useState(STEP);
  const isArray = Array.isArray(value);
  if (!isArray && !isRecord(value)) {
    return (
      <div className="json-leaf">
        <Name name={name} />
        <Leaf value={value} />
      </div>
    );
  }
  const entries = Object.entries(value);
  const size = isArray ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) {
    return (
      <div className="json-leaf">
        <Name name={name} />
        <span className="json-size">{isArray ? '[]' : '{}'}</span>
      </div>
    );
  }
  return (
    <div>
      <button type="button" className="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <ChevronIcon />
        <Name name={name} />
        <span className="json-size">{size}</span>
      </button>
      {isOpen && (
        <div className="json-children">
          {entries.slice(0, shown).map(([key, each]) => (
            <Node key={key} name={key} value={each} open={open - 1} />
          ))}
          {entries.length > shown && (
            <button type="button" className="link-button" onClick={() => setShown(shown + STEP)}>
              {entries.length - shown} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Name({ name }: { name: string | undefined }) {
  return name === undefined ? null : <span className="json-name">{name}: </span>;
}

function Leaf({ value }: { value: unknown }) {
  const [whole, setWhole] = useState(false);
  const text = JSON.stringify(value) ?? 'undefined';
  if (text.length <= LONG_TEXT || whole)
    return <span className={`json-${value === null ? 'null' : typeof value}`}>{text}</span>;
  return (
    <>
      <span className={`json-${typeof value}`}>{text.slice(0, LONG_TEXT)}…</span>
      <button type="button" className="link-button" onClick={() => setWhole(true)}>
        {text.length.toLocaleString('en')} characters
      </button>
    </>
  );
}
