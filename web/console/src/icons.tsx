import type { ReactNode } from 'react';

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg
      className="icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

/** A carabiner. */
export function Logo() {
  return (
    <svg className="logo" viewBox="0 0 32 32" width="28" height="28" fill="none" aria-hidden="true">
      <rect className="logo-ground" width="32" height="32" rx="8" />
      <path
        className="logo-line"
        d="M20.5 12.5v-1.8a4.7 4.7 0 0 0-9-1.9l-1.6 3.7A9 9 0 0 0 9.2 16v4.3a4.7 4.7 0 0 0 4.7 4.7h1.9a4.7 4.7 0 0 0 4.7-4.7v-1.6"
        strokeWidth="2.4"
        strokeLinecap="round"
      />
      <path className="logo-gate" d="M20.5 12.5v6.2" strokeWidth="2.4" strokeLinecap="round" />
    </svg>
  );
}

export const SearchIcon = () => (
  <Icon>
    <circle cx="7" cy="7" r="4.25" />
    <path d="m10.5 10.5 3 3" />
  </Icon>
);
export const PlugIcon = () => (
  <Icon>
    <path d="M5.5 2v3M10.5 2v3M3.5 5h9v2.5a4.5 4.5 0 0 1-9 0zM8 12v2" />
  </Icon>
);
export const PlusIcon = () => (
  <Icon>
    <path d="M8 3.5v9M3.5 8h9" />
  </Icon>
);
export const RemoveIcon = () => (
  <Icon>
    <path d="m4.5 4.5 7 7M11.5 4.5l-7 7" />
  </Icon>
);
export const PlayIcon = () => (
  <Icon>
    <path d="M5 3.2v9.6L12.8 8z" fill="currentColor" />
  </Icon>
);
export const StopIcon = () => (
  <Icon>
    <rect x="4.5" y="4.5" width="7" height="7" rx="1" fill="currentColor" />
  </Icon>
);
export const CheckIcon = () => (
  <Icon>
    <path d="m3.5 8.5 3 3 6-7" />
  </Icon>
);
export const WarnIcon = () => (
  <Icon>
    <path d="M8 2.5 14 13H2zM8 6.5v3M8 11.3v.1" />
  </Icon>
);
export const CopyIcon = () => (
  <Icon>
    <rect x="5.5" y="5.5" width="7.5" height="7.5" rx="1.5" />
    <path d="M3 10.5v-6A1.5 1.5 0 0 1 4.5 3h6" />
  </Icon>
);
export const ChevronIcon = () => (
  <Icon>
    <path d="m6 4 4 4-4 4" />
  </Icon>
);
export const SentIcon = () => (
  <Icon>
    <path d="M8 13V3.5M4 7l4-4 4 4" />
  </Icon>
);
export const ReceivedIcon = () => (
  <Icon>
    <path d="M8 3v9.5M4 9l4 4 4-4" />
  </Icon>
);
export const PauseIcon = () => (
  <Icon>
    <path d="M5.5 4v8M10.5 4v8" />
  </Icon>
);
export const ResourceIcon = () => (
  <Icon>
    <path d="M4 2.5h5l3 3v8H4zM9 2.5v3h3" />
  </Icon>
);
export const BellIcon = () => (
  <Icon>
    <path d="M4 11V7a4 4 0 0 1 8 0v4l1 1.5H3zM6.8 14h2.4" />
  </Icon>
);
export const LinkIcon = () => (
  <Icon>
    <path d="M6 4H3.5v8.5H12V10M9 3h4v4M13 3 7.5 8.5" />
  </Icon>
);
export const DownloadIcon = () => (
  <Icon>
    <path d="M8 2.5v7.5M5 7l3 3 3-3M3 13h10" />
  </Icon>
);
