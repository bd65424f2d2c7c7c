import { useEffect, useRef, type KeyboardEvent, type ReactNode } from 'react';
import { RemoveIcon } from './icons';

interface Props {
  title: string;
  subtitle?: string;
  text?: string;
  /** What is said of it in single words. */
  tags?: readonly string[];
  onClose(): void;
  children: ReactNode;
}

/** What was picked from the list. Its heading takes the focus when it appears; Escape closes it. */
export function Panel({ title, subtitle, text, tags, onClose, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // After a reload nothing was picked: the focus stays where the browser puts it.
    if (document.activeElement && document.activeElement !== document.body)
      heading.current?.focus({ preventScroll: true });
  }, []);
  const close = () => {
    const picked = document.querySelector<HTMLElement>('.entry [aria-current]');
    onClose();
    picked?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') close();
  };
  return (
    <section className="panel" aria-label={title} onKeyDown={onKeyDown}>
      <div className="panel-head">
        <h2 ref={heading} tabIndex={-1}>
          {title}
        </h2>
        {subtitle && subtitle !== title && <span className="quiet">{subtitle}</span>}
        {tags?.map(tag => (
          <span key={tag} className={tag === 'destructive' ? 'chip bad' : 'chip'}>
            {tag}
          </span>
        ))}
        <span className="spring" />
        <button type="button" className="icon-button" onClick={close} aria-label="Close" title="Close (Esc)">
          <RemoveIcon />
        </button>
      </div>
      {text && <p className="panel-text">{text}</p>}
      {children}
    </section>
  );
}
