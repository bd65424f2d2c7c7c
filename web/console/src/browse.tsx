// The list on the left: tools, resources or prompts, with a search.
import { object, oneOf, optional, text } from 'belay-client/shapes';
import { useEffect, useId, useRef } from 'react';
import type { Catalog, Listed } from './catalog';
import { SearchIcon } from './icons';

export type Section = 'tools' | 'resources' | 'prompts';
export interface Selection {
  readonly section: Section;
  readonly tool?: string;
  /** A resource's URI, or a template's. */
  readonly resource?: string;
  readonly prompt?: string;
}

export const selectionShape = object({
  section: oneOf('tools', 'resources', 'prompts'),
  tool: optional(text),
  resource: optional(text),
  prompt: optional(text),
});

const SECTIONS: { id: Section; name: string }[] = [
  { id: 'tools', name: 'Tools' },
  { id: 'resources', name: 'Resources' },
  { id: 'prompts', name: 'Prompts' },
];

interface Props {
  catalog: Catalog;
  selection: Selection;
  search: string;
  /** URIs whose content changed since it was read. */
  updated: ReadonlySet<string>;
  onSearch(text: string): void;
  onSelect(selection: Selection): void;
}

export function Browse({ catalog, selection, search, updated, onSearch, onSelect }: Props) {
  const { section } = selection;
  return (
    <nav className="browse" aria-label="What the server offers">
      <div className="sections">
        {SECTIONS.map(({ id, name }) => (
          <button
            key={id}
            type="button"
            aria-pressed={section === id}
            onClick={() => onSelect({ ...selection, section: id })}
          >
            {name}
          </button>
        ))}
      </div>
      <Search text={search} onText={onSearch} what={section} />
      <div className="browse-list">
        {section === 'tools' && (
          <List
            listed={catalog.tools}
            search={search}
            what="tools"
            item={tool => ({
              id: tool.name,
              name: tool.name,
              title: tool.title ?? tool.annotations?.title,
              text: tool.description,
            })}
            selected={selection.tool}
            onSelect={tool => onSelect({ ...selection, tool })}
          />
        )}
        {section === 'resources' && (
          <>
            <List
              listed={catalog.resources}
              search={search}
              what="resources"
              item={resource => ({
                id: resource.uri,
                name: resource.name,
                title: resource.title,
                text: resource.uri,
                mark: updated.has(resource.uri),
              })}
              selected={selection.resource}
              onSelect={resource => onSelect({ ...selection, resource })}
            />
            {catalog.templates.items.length > 0 && (
              <>
                <h2 className="browse-heading">Templates</h2>
                <List
                  listed={catalog.templates}
                  search={search}
                  what="templates"
                  item={template => ({
                    id: template.uriTemplate,
                    name: template.name,
                    title: template.title,
                    text: template.uriTemplate,
                  })}
                  selected={selection.resource}
                  onSelect={resource => onSelect({ ...selection, resource })}
                />
              </>
            )}
          </>
        )}
        {section === 'prompts' && (
          <List
            listed={catalog.prompts}
            search={search}
            what="prompts"
            item={prompt => ({
              id: prompt.name,
              name: prompt.name,
              title: prompt.title,
              text: prompt.description,
            })}
            selected={selection.prompt}
            onSelect={prompt => onSelect({ ...selection, prompt })}
          />
        )}
      </div>
    </nav>
  );
}

function Search({ text, onText, what }: { text: string; onText(text: string): void; what: string }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const isTyping = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
  return (
    <div className="search">
      <SearchIcon />
      <input
        ref={input}
        type="search"
        aria-label={`Search ${what}`}
        aria-keyshortcuts="/"
        placeholder={`Search ${what}`}
        value={text}
        onChange={event => onText(event.target.value)}
        onKeyDown={event => {
          if (event.key !== 'Escape') return;
          event.stopPropagation();
          if (text) onText('');
          else input.current?.blur();
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

interface Item {
  id: string;
  name: string;
  title?: string;
  text?: string;
  mark?: boolean;
}

interface ListProps<T> {
  listed: Listed<T>;
  search: string;
  what: string;
  item(each: T): Item;
  selected: string | undefined;
  onSelect(id: string): void;
}

function List<T>({ listed, search, what, item, selected, onSelect }: ListProps<T>) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const all = listed.items.map(item);
  const items = all.filter(({ name, title, text }) => {
    const hay = `${name} ${title ?? ''} ${text ?? ''}`.toLowerCase();
    return words.every(word => hay.includes(word));
  });
  return (
    <>
      <ul>
        {items.map(each => (
          <Entry key={each.id} item={each} isSelected={each.id === selected} onSelect={onSelect} />
        ))}
      </ul>
      {items.length === 0 && (
        <p className="empty">
          {listed.state === 'loading' && 'Loading…'}
          {listed.state === 'ready' && (all.length > 0 ? `No ${what} match.` : `The server has no ${what}.`)}
          {listed.state === 'failed' && `The ${what} could not be listed: ${listed.error}`}
        </p>
      )}
      {listed.hasMore && (
        <button type="button" className="button small more" onClick={listed.more} disabled={listed.state === 'loading'}>
          More {what}
        </button>
      )}
    </>
  );
}

/** The button holds the item's name alone and covers the whole row; what stands below it describes it. */
function Entry({ item, isSelected, onSelect }: { item: Item; isSelected: boolean; onSelect(id: string): void }) {
  const id = useId();
  const text = [item.title, item.text].filter(Boolean).join('. ');
  return (
    <li className="entry">
      <span className="entry-head">
        <button
          type="button"
          aria-describedby={text ? id : undefined}
          aria-current={isSelected || undefined}
          onClick={() => onSelect(item.id)}
        >
          {item.name}
        </button>
        {item.mark && <span className="mark">updated</span>}
      </span>
      {text && (
        <span className="entry-text" id={id} title={text}>
          {text}
        </span>
      )}
    </li>
  );
}
