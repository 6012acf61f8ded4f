import { Modal, Text, TextInput } from '@mantine/core';
import { lazy, Suspense, useEffect, useMemo, useState, type KeyboardEvent } from 'react';
import { listRecords } from '../api/client.ts';
import type { AdminResourceShape } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { hashOf } from '../routing/location.ts';
import { useSession } from '../session/session-gate.tsx';
import { commandsAtHand } from './commands.ts';
import { knownEntries, matching, type Entry } from './palette-entries.ts';
import { isApple } from './platform.ts';
import css from './shell.module.css';

const ShortcutSheet = lazy(async () => ({ default: (await import('./shortcuts.tsx')).ShortcutSheet }));

const TYPING_MS = 250;
/** Records of each list that are offered, and how many lists are asked. */
const FOUND_MAX = 4;
const MIN_CHARACTERS = 2;

/** The button, or Ctrl-K, goes to any screen, record or action by its name. `/` goes to the search of the list. */
export function Palette() {
  const [isOpen, setOpen] = useState(false);
  const [isSheetOpen, setSheetOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setOpen(true);
      }
      if (
        event.key === '?' &&
        !isTyping(event.target) &&
        !event.ctrlKey &&
        !event.metaKey &&
        document.querySelector('[role="dialog"]') === null
      ) {
        event.preventDefault();
        setSheetOpen(true);
      }
      if (event.key === '/' && !isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey) {
        const search = document.querySelector<HTMLInputElement>('main [role="search"] input[type="search"]');
        if (search === null) return;
        event.preventDefault();
        search.focus();
        search.select();
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button type="button" className={css['paletteButton']} aria-keyshortcuts="Control+K Meta+K" onClick={() => setOpen(true)}>
        <Icon name="search" size={16} />
        <span>Search and actions</span>
        <kbd aria-hidden="true">{isApple() ? '⌘ K' : 'Ctrl K'}</kbd>
      </button>
      {isOpen && <PaletteDialog onClose={() => setOpen(false)} />}
      {isSheetOpen && (
        <Suspense>
          <ShortcutSheet onClose={() => setSheetOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (/^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
}

function PaletteDialog({ onClose }: { readonly onClose: () => void }) {
  const { site } = useSession();
  const [text, setText] = useState('');
  const [found, setFound] = useState<readonly Entry[]>([]);
  const [at, setAt] = useState(0);
  const wanted = text.trim();
  useEffect(() => {
    setFound([]);
    if (wanted.length < MIN_CHARACTERS) return undefined;
    const aborting = new AbortController();
    const timer = window.setTimeout(() => {
      for (const resource of site.resources.filter(({ searches }) => searches !== undefined))
        void search(resource, wanted, aborting.signal).then((entries) =>
          aborting.signal.aborted ? undefined : setFound((before) => [...before, ...entries]),
        );
    }, TYPING_MS);
    return () => {
      window.clearTimeout(timer);
      aborting.abort();
    };
  }, [wanted, site]);

  const known = useMemo(() => [...commandsAtHand(), ...knownEntries(site.resources)], [site]);
  const entries = [...matching(known, wanted), ...found];
  const current = Math.min(at, entries.length - 1);

  const go = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    if (entry.run === undefined) window.location.hash = entry.hash;
    else entry.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') go(entries[current]);
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0 || entries.length === 0) return;
    event.preventDefault();
    setAt((current + step + entries.length) % entries.length);
  };
  return (
    <Modal
      opened
      onClose={onClose}
      withCloseButton={false}
      title="Search and actions"
      size="lg"
      yOffset="12vh"
      transitionProps={{ duration: 0 }}
    >
      <TextInput
        data-autofocus
        aria-label="Search screens, records and actions"
        placeholder="Search screens, records and actions"
        leftSection={<Icon name="search" size={16} />}
        value={text}
        spellCheck={false}
        role="combobox"
        aria-expanded
        aria-controls="palette"
        aria-activedescendant={entries.length === 0 ? undefined : `palette-${current}`}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="palette" role="listbox" aria-label="Where to go" className={css['palette']}>
        {entries.map((entry, index) => (
          <li key={entry.key} id={`palette-${index}`} role="option" aria-selected={index === current} onClick={() => go(entry)}>
            <span>{entry.label}</span>
            <span className={css['paletteDetail']}>{entry.detail}</span>
          </li>
        ))}
      </ul>
      {entries.length === 0 && (
        <Text size="sm" c="dimmed" role="status">
          No results.
        </Text>
      )}
    </Modal>
  );
}

async function search(resource: AdminResourceShape, text: string, signal: AbortSignal): Promise<Entry[]> {
  try {
    const page = await listRecords(resource.name, { search: text, filters: {}, sort: '', cursor: '', limit: FOUND_MAX }, signal);
    return page.items.map(({ id, title }) => ({
      key: `${resource.name} ${id}`,
      label: title,
      detail: resource.singular,
      hash: hashOf({ page: 'record', resource: resource.name, id }),
    }));
  } catch {
    // One list that does not answer must not hide what the others found.
    return [];
  }
}
