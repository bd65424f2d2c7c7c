import { useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';

/** Rows above and below the visible ones, so that scrolling shows no gap. */
const SPARE = 8;

interface Props {
  count: number;
  rowHeight: number;
  /** Must fill its box, not more. */
  row(index: number): ReactNode;
  rowKey(index: number): string | number;
  /** A row that is taller, by so many pixels. */
  expanded?: { index: number; height: number };
  /** How many rows were dropped at the top, so that those in sight can stay where they are. */
  dropped: number;
  label: string;
  role: 'log' | 'region';
  className?: string;
}

/**
 * Only the rows in sight exist. Stays at the end while it is there. One stop for the Tab key; the arrow keys, Home and
 * End go from one row's button to another's.
 */
export function WindowedList(props: Props) {
  const { count, rowHeight, row, rowKey, expanded, dropped, label, role, className } = props;
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const before = useRef(dropped);
  const [view, setView] = useState({ top: 0, height: 0 });
  const total = count * rowHeight + (expanded ? expanded.height : 0);

  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => {
      if (atEnd.current) element.scrollTop = element.scrollHeight;
      setView({ top: element.scrollTop, height: element.clientHeight });
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  // Somebody reads the row that was opened: it stays where it is.
  const opened = expanded ? rowKey(expanded.index) : undefined;
  useLayoutEffect(() => {
    if (opened !== undefined) atEnd.current = false;
  }, [opened]);

  useLayoutEffect(() => {
    const element = box.current!;
    if (atEnd.current) element.scrollTop = element.scrollHeight;
    else if (dropped > before.current) element.scrollTop -= (dropped - before.current) * rowHeight;
    before.current = dropped;
    setView(old => (old.top === element.scrollTop ? old : { top: element.scrollTop, height: element.clientHeight }));
  }, [total, dropped, rowHeight]);

  // The row to focus once it exists, and the way on from a row that has no button.
  const wanted = useRef<{ index: number; step: number } | undefined>(undefined);
  useLayoutEffect(() => {
    const { index, step } = wanted.current ?? { index: -1, step: 0 };
    const element = box.current!.querySelector(`[data-index="${index}"]`);
    if (!element) return;
    wanted.current = undefined;
    const button = element.querySelector('button');
    if (button) button.focus({ preventScroll: true });
    else if (index + step >= 0 && index + step < count) focusRow(index + step, step);
  });

  const focusRow = (index: number, step: number) => {
    const element = box.current!;
    wanted.current = { index, step };
    atEnd.current = false;
    const top = offset(index);
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight) {
      element.scrollTop = top + rowHeight - element.clientHeight;
    }
    setView({ top: element.scrollTop, height: element.clientHeight });
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, End: -1, ArrowUp: -1, Home: 1 }[event.key];
    if (step === undefined || count === 0) return;
    const focused = (event.target as HTMLElement).closest<HTMLElement>('[data-index]')?.dataset['index'];
    // From the list itself, begin with what is in sight.
    const inSight = Math.floor(view.top / rowHeight) + (step > 0 ? 1 : Math.floor(view.height / rowHeight) - 1);
    const next = focused === undefined ? inSight : Number(focused) + step;
    const index = event.key === 'Home' ? 0 : event.key === 'End' ? count - 1 : Math.max(0, Math.min(count - 1, next));
    event.preventDefault();
    focusRow(index, step);
  };

  const onScroll = () => {
    const element = box.current!;
    atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < rowHeight;
    setView({ top: element.scrollTop, height: element.clientHeight });
  };

  const offset = (index: number) => index * rowHeight + (expanded && index > expanded.index ? expanded.height : 0);
  const extra = expanded && view.top > expanded.index * rowHeight ? Math.ceil(expanded.height / rowHeight) : 0;
  const first = Math.max(0, Math.floor(view.top / rowHeight) - SPARE - extra);
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + SPARE);
  const rows: ReactNode[] = [];
  for (let index = first; index < last; index += 1) {
    const height = rowHeight + (expanded?.index === index ? expanded.height : 0);
    rows.push(
      <div
        key={rowKey(index)}
        data-index={index}
        className="windowed-row"
        style={{ transform: `translateY(${offset(index)}px)`, height }}
      >
        {row(index)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      role={role}
      aria-label={label}
      aria-live="off"
      tabIndex={count > 0 ? 0 : -1}
      className={`windowed ${className ?? ''}`}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
    >
      <div className="windowed-body" style={{ height: total }}>
        {rows}
      </div>
    </div>
  );
}
