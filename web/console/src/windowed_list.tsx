import { useLayoutEffect, useRef, useState, type ReactNode } from 'react';

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

/** Only the rows in sight exist. Stays at the end while it is there. */
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

  useLayoutEffect(() => {
    const element = box.current!;
    if (atEnd.current) element.scrollTop = element.scrollHeight;
    else if (dropped > before.current) element.scrollTop -= (dropped - before.current) * rowHeight;
    before.current = dropped;
    setView(old => (old.top === element.scrollTop ? old : { top: element.scrollTop, height: element.clientHeight }));
  }, [total, dropped, rowHeight]);

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
      <div key={rowKey(index)} className="windowed-row" style={{ transform: `translateY(${offset(index)}px)`, height }}>
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
    >
      <div className="windowed-body" style={{ height: total }}>
        {rows}
      </div>
    </div>
  );
}
