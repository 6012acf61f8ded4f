// Drawn on a 24 × 24 grid with round strokes; decorative, so the words beside them carry the meaning.
const PATHS = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  key: 'M14.5 9.5a4.5 4.5 0 1 0-3.4 4.37L13 15.8h2.2V18h2.2v2.2H21v-3.4l-6.84-6.2a4.5 4.5 0 0 0 .34-1.1zM9 8.5h.01',
  endpoint: 'M9 7V3M15 7V3M6.5 7h11v4.5a5.5 5.5 0 0 1-11 0zM12 17v4',
  delivery: 'M21 3 10.5 13.5M21 3l-6.5 18-4-7.5L3 9.5z',
  event: 'M13 2.5 4.5 13.5H11l-.5 8 9-11.5H13z',
  user: 'M12 11.5a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5c.6-3.6 3.6-5.5 7.5-5.5s6.9 1.9 7.5 5.5',
  group:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c.5-3.4 3-5.2 6.5-5.2s6 1.8 6.5 5.2M16 4.3a3.4 3.4 0 0 1 0 6.5M18 15.2c2 .7 3.2 2.3 3.5 4.8',
  tenant: 'M5 20.5V4h9v16.5M14 9.5h5v11M2.5 20.5h19M8 8h3M8 12h3M8 16h3',
  shield: 'M12 3l7.5 3v5.5c0 4.5-3 7.8-7.5 9.5-4.5-1.7-7.5-5-7.5-9.5V6zM9 12l2.2 2.2L15.3 10',
  mail: 'M3.5 5.5h17v13h-17zM4 6.5l8 6.5 8-6.5',
  job: 'M12 15.2a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4zM12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.1 2.1M16.3 16.3l2.1 2.1M18.4 5.6l-2.1 2.1M7.7 16.3l-2.1 2.1',
  failure: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9 9l6 6M15 9l-6 6',
  request: 'M4 8h14M14 4l4 4-4 4M20 16H6M10 12l-4 4 4 4',
  usage: 'M4 20.5h16.5M6.5 17v-5M11 17V6M15.5 17v-8M20 17v-3',
  audit: 'M6 3h9l4 4v14H6zM15 3v4h4M9.5 12h6M9.5 16h6',
  table: 'M4 5h16v14H4zM4 10h16M10 10v9',
  columns: 'M4 5h16v14H4zM9.3 5v14M14.7 5v14',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20.5 20.5',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  auto: 'M3.5 5h17v11h-17zM8.5 20h7M12 16v4',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.5 10 17.5 19.5 7',
  cross: 'M6 6l12 12M18 6 6 18',
  plus: 'M12 5v14M5 12h14',
  edit: 'M4 20h4L19.5 8.5l-4-4L4 16zM13.5 6.5l4 4',
  trash: 'M4.5 7h15M9.5 7V4h5v3M6.5 7l1 13.5h9L17.5 7M10.5 11v6M13.5 11v6',
  refresh: 'M20 11a8 8 0 0 0-14.5-3.5L4 9M4 4v5h5M4 13a8 8 0 0 0 14.5 3.5L20 15M20 20v-5h-5',
  right: 'M9.5 5.5 16 12l-6.5 6.5',
  left: 'M14.5 5.5 8 12l6.5 6.5',
  down: 'M5.5 9.5 12 16l6.5-6.5',
  first: 'M18 5.5 11.5 12l6.5 6.5M6.5 5.5v13',
  outside: 'M13.5 4.5h6v6M19.5 4.5 11 13M17.5 14v5.5h-13v-13H10',
  warning: 'M12 4 2.5 20h19zM12 10v4.5M12 17.5h.01',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5.5M12 7.5h.01',
  offline:
    'M3 3l18 18M8.5 15.5a5 5 0 0 1 6 -.5M5 12a10 10 0 0 1 4-2.4M13.5 9.2A10 10 0 0 1 19 12M2 8.5A15 15 0 0 1 6.5 5.6M11 4.6A15 15 0 0 1 22 8.5M12 19h.01',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.5 2',
  leave: 'M14 4.5H5v15h9M10 12h11M17.5 8.5 21 12l-3.5 3.5',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4M12 11v6M9.5 14.5 12 17l2.5-2.5',
  star: 'M12 3.5l2.6 5.4 5.9.8-4.3 4.1 1.1 5.9L12 16.9l-5.3 2.8 1.1-5.9L3.5 9.7l5.9-.8z',
  menu: 'M4 7h16M4 12h16M4 17h16',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      viewBox="0 0 24 24"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth={1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
