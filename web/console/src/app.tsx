import { oneOf } from 'belay-client/shapes';
import { useMcpClient } from 'belay-react';
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import { Browse, selectionShape, type Selection } from './browse';
import { Calls } from './calls';
import { useCatalog, type Catalog } from './catalog';
import { OpenResource } from './content';
import { Guard } from './guard';
import { Header } from './header';
import { Notice } from './notice';
import { PromptPanel } from './prompt_panel';
import type { Questions } from './questions';
import { ResourcePanel, TemplatePanel } from './resource_panel';
import { usePersisted } from './storage';
import { useSubscriptions, type Subscriptions } from './subscriptions';
import type { Timeline } from './timeline';
import { TimelinePanel } from './timeline_panel';
import { ToolPanel } from './tool_panel';

/** On a narrow screen one of these is in sight. */
type View = 'browse' | 'work' | 'timeline';
/** Below this width, as in the style sheet, the list has no place of its own. */
const PHONE = 720;
const VIEWS: { id: View; name: string }[] = [
  { id: 'browse', name: 'Browse' },
  { id: 'work', name: 'Calls' },
  { id: 'timeline', name: 'Timeline' },
];

const viewShape = oneOf('browse', 'work', 'timeline');

export function App({ questions, timeline }: { questions: Questions; timeline: Timeline }) {
  const { client } = useMcpClient();
  const catalog = useCatalog();
  const subscriptions = useSubscriptions();
  const [selection, setSelection] = usePersisted<Selection>('selection', selectionShape, () => ({ section: 'tools' }));
  const [search, setSearch] = useState('');
  const [view, setView] = usePersisted<View>('view', viewShape, () => (innerWidth < PHONE ? 'browse' : 'work'));
  const asked = useSyncExternalStore(questions.subscribe, questions.all);
  useEffect(() => timeline.follow(client), [timeline, client]);

  const select = (next: Selection) => {
    setSelection(next);
    if (next.section === selection.section) setView('work');
    else setSearch('');
  };
  const openResource = useCallback(
    (resource: string) => setSelection({ ...selection, section: 'resources', resource }),
    [selection, setSelection],
  );

  return (
    <OpenResource value={openResource}>
      <div className="app">
        <Header timeline={timeline} />
        {/* Around all that is switched: each view has a main landmark. */}
        <main className="parts" data-view={view}>
          <div className="views">
            {VIEWS.map(({ id, name }) => (
              <button key={id} type="button" aria-pressed={view === id} onClick={() => setView(id)}>
                {name}
                {id === 'work' && asked.length > 0 && <span className="views-mark" title="A call waits for you" />}
              </button>
            ))}
          </div>
          <Browse
            catalog={catalog}
            selection={selection}
            search={search}
            updated={subscriptions.updated}
            onSearch={setSearch}
            onSelect={select}
          />
          <div className="work">
            <Notice />
            <Guard
              key={JSON.stringify(selection)}
              what="What is selected"
              action={{ name: 'Close', run: () => setSelection({ section: selection.section }) }}
            >
              <Selected
                catalog={catalog}
                selection={selection}
                subscriptions={subscriptions}
                onSelection={setSelection}
              />
            </Guard>
            <Calls questions={questions} />
          </div>
          <TimelinePanel timeline={timeline} />
        </main>
      </div>
    </OpenResource>
  );
}

interface SelectedProps {
  catalog: Catalog;
  selection: Selection;
  subscriptions: Subscriptions;
  onSelection(selection: Selection): void;
}

function Selected({ catalog, selection, subscriptions, onSelection }: SelectedProps) {
  const { callTool, status } = useMcpClient();
  switch (selection.section) {
    case 'tools': {
      const tool = catalog.tools.items.find(({ name }) => name === selection.tool);
      if (!tool) return null;
      const close = () => onSelection({ ...selection, tool: undefined });
      return (
        <ToolPanel
          key={tool.name}
          tool={tool}
          canRun={status.state === 'connected' || status.state === 'reconnecting'}
          onRun={args => callTool(tool.name, args)}
          onClose={close}
        />
      );
    }
    case 'resources': {
      const uri = selection.resource;
      if (uri === undefined) return null;
      const close = () => onSelection({ ...selection, resource: undefined });
      const template = catalog.templates.items.find(({ uriTemplate }) => uriTemplate === uri);
      if (template)
        return <TemplatePanel key={uri} template={template} subscriptions={subscriptions} onClose={close} />;
      const resource = catalog.resources.items.find(each => each.uri === uri);
      return <ResourcePanel key={uri} uri={uri} resource={resource} subscriptions={subscriptions} onClose={close} />;
    }
    case 'prompts': {
      const prompt = catalog.prompts.items.find(({ name }) => name === selection.prompt);
      if (!prompt) return null;
      const close = () => onSelection({ ...selection, prompt: undefined });
      return <PromptPanel key={prompt.name} prompt={prompt} onClose={close} />;
    }
  }
}
