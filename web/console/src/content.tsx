// What tools, resources and prompts give, by its type.
import type { BlobResourceContents, ContentBlock, TextResourceContents } from '@modelcontextprotocol/client';
import { createContext, useContext, useState } from 'react';
import { bytes } from './format';
import { CheckIcon, CopyIcon, DownloadIcon, ResourceIcon } from './icons';
import { JsonTree } from './json_tree';
import { isRecord } from './schema_form/schema';

/** Shows a resource in the browser of resources. */
export const OpenResource = createContext<(uri: string) => void>(() => undefined);

export function Content({ block }: { block: ContentBlock }) {
  return (
    <div className="content">
      <Audience block={block} />
      <Body block={block} />
    </div>
  );
}

function Body({ block }: { block: ContentBlock }) {
  switch (block.type) {
    case 'text':
      return <Text text={block.text} />;
    case 'image':
      return <Image data={block.data} mimeType={block.mimeType} />;
    case 'audio':
      return <Audio data={block.data} mimeType={block.mimeType} />;
    case 'resource_link':
      return <Link uri={block.uri} name={block.title ?? block.name} description={block.description} />;
    case 'resource':
      return <ResourceBody contents={block.resource} />;
    default:
      return <JsonTree value={block} />;
  }
}

function Audience({ block }: { block: ContentBlock }) {
  const { audience, priority } = block.annotations ?? {};
  if (!audience && priority === undefined) return null;
  return (
    <p className="content-note">
      {audience && `For ${audience.join(' and ')}`}
      {audience && priority !== undefined && ' · '}
      {priority !== undefined && `priority ${priority}`}
    </p>
  );
}

export function ResourceBody({ contents }: { contents: TextResourceContents | BlobResourceContents }) {
  const mimeType = contents.mimeType ?? '';
  return (
    <div className="resource">
      <p className="resource-head">
        <span className="mono">{contents.uri}</span>
        {mimeType && <span className="chip">{mimeType}</span>}
      </p>
      {'text' in contents ? (
        <TextOf text={contents.text} mimeType={mimeType} />
      ) : (
        <Bytes base64={contents.blob} mimeType={mimeType} />
      )}
    </div>
  );
}

function TextOf({ text, mimeType }: { text: string; mimeType: string }) {
  if (/[/+]json\b/.test(mimeType)) {
    const value = parsed(text);
    if (value !== undefined) return <JsonTree value={value} open={2} />;
  }
  return <Text text={text} />;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A text; an object or array in it can be shown as a tree. */
export function Text({ text }: { text: string }) {
  const [asTree, setAsTree] = useState(false);
  const value = /^\s*[{[]/.test(text) ? parsed(text) : undefined;
  const hasTree = Array.isArray(value) || isRecord(value);
  return (
    <div className="text-block">
      {asTree && hasTree ? (
        <JsonTree value={value} open={2} />
      ) : (
        <pre tabIndex={text.length > 2000 ? 0 : undefined}>{text}</pre>
      )}
      <div className="text-actions">
        {hasTree && (
          <button type="button" className="link-button" aria-pressed={asTree} onClick={() => setAsTree(!asTree)}>
            Tree
          </button>
        )}
        <CopyButton text={text} />
      </div>
    </div>
  );
}

export function CopyButton({ text, label = 'Copy' }: { text: string | (() => string); label?: string }) {
  const [copied, setCopied] = useState(false);
  // There is none on pages without TLS.
  if (!navigator.clipboard) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={label}
      title={label}
      onClick={() => void copy().catch(() => setCopied(false))}
    >
      {copied ? <CheckIcon /> : <CopyIcon />}
    </button>
  );
}

function Image({ data, mimeType }: { data: string; mimeType: string }) {
  return (
    <figure>
      <img src={`data:${mimeType};base64,${data}`} alt={`Image, ${mimeType}`} />
    </figure>
  );
}

function Audio({ data, mimeType }: { data: string; mimeType: string }) {
  return <audio controls src={`data:${mimeType};base64,${data}`} aria-label={`Sound, ${mimeType}`} />;
}

function Link({ uri, name, description }: { uri: string; name: string; description: string | undefined }) {
  const openResource = useContext(OpenResource);
  return (
    <div className="resource-link">
      <ResourceIcon />
      <div>
        <p>{name}</p>
        <p className="mono quiet">{uri}</p>
        {description && <p className="quiet">{description}</p>}
      </div>
      <button type="button" className="button small" onClick={() => openResource(uri)}>
        Open resource
      </button>
    </div>
  );
}

function Bytes({ base64, mimeType }: { base64: string; mimeType: string }) {
  if (mimeType.startsWith('image/')) return <Image data={base64} mimeType={mimeType} />;
  if (mimeType.startsWith('audio/')) return <Audio data={base64} mimeType={mimeType} />;
  const save = () => {
    const binary = Uint8Array.from(atob(base64), char => char.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([binary], { type: mimeType }));
    const link = document.createElement('a');
    link.href = url;
    link.download = 'resource';
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return (
    <div className="bytes">
      <span className="quiet">{bytes((base64.length * 3) / 4 - padding)}</span>
      <button type="button" className="button small" onClick={save}>
        <DownloadIcon />
        Download
      </button>
    </div>
  );
}
