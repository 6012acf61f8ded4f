import { Modal, Text, TextInput } from '@mantine/core';
import { useEffect, useMemo, useState, type KeyboardEvent } from 'react';
import { listRecords } from '../api/client.ts';
import type { AdminResourceShape } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { hashOf } from '../routing/location.ts';
import { useSession } from '../session/session-gate.tsx';
import { useCommandsAtHand } from './commands.ts';
import { knownEntries, matching, type Entry } from './palette-entries.ts';
import css from './shell.module.css';

const TYPING_MS = 250;
/** Records of each list that are offered, and how many lists are asked. */
const FOUND_MAX = 4;
const MIN_CHARACTERS = 2;

export function PaletteDialog({ onClose }: { readonly onClose: () => void }) {
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

  const known = useMemo(() => knownEntries(site.resources), [site]);
  const entries = [...matching([...useCommandsAtHand(), ...known], wanted), ...found];
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
