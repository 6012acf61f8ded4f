import type { AdminResourceShape } from '../api/shapes.ts';
import { hashOf, listHash } from '../routing/location.ts';
import { lowerFirst, pluralOf } from '../values/format.ts';

/** A place that the palette leads to. */
export interface Entry {
  readonly key: string;
  readonly label: string;
  /** What it is: a screen, an action, or the kind of the record. */
  readonly detail: string;
  readonly hash: string;
  /** Done in place of going there. */
  readonly run?: () => void;
}

/** Every screen, and what can be done from anywhere: create, import, and the shortcuts of the lists. */
export function knownEntries(resources: readonly AdminResourceShape[]): readonly Entry[] {
  const screens: Entry[] = [
    { key: 'overview', label: 'Overview', detail: 'Screen', hash: hashOf({ page: 'overview' }) },
    ...resources.map(({ name, label, group }) => ({
      key: name,
      label,
      detail: `Screen, ${group}`,
      hash: hashOf({ page: 'list', resource: name }),
    })),
    { key: 'account', label: 'Your account', detail: 'Screen', hash: hashOf({ page: 'account' }) },
  ];
  return [...screens, ...resources.flatMap(actionsOf)];
}

function actionsOf(resource: AdminResourceShape): Entry[] {
  const { name, creation, imports, shortcuts = [], singular } = resource;
  const detail = 'Action';
  return [
    ...('fields' in creation
      ? [{ key: `new ${name}`, label: `New ${lowerFirst(singular)}`, detail, hash: hashOf({ page: 'create', resource: name }) }]
      : []),
    ...(imports === undefined
      ? []
      : [{ key: `import ${name}`, label: `Import ${pluralOf(resource)}`, detail, hash: hashOf({ page: 'import', resource: name }) }]),
    ...shortcuts.map(({ label, filters, action }) => ({
      key: `${name} ${label}`,
      label,
      detail,
      hash: `${listHash(name, filters)}${action === undefined ? '' : `&run=${encodeURIComponent(action)}`}`,
    })),
  ];
}

/** Entries that have every word of the text; those that begin with it come first. */
export function matching(entries: readonly Entry[], text: string): readonly Entry[] {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter((word) => word !== '');
  const found = entries.filter(({ label, detail }) => words.every((word) => `${label} ${detail}`.toLowerCase().includes(word)));
  const rank = ({ label }: Entry): number => (label.toLowerCase().startsWith(wanted) ? 0 : 1);
  return found.toSorted((a, b) => rank(a) - rank(b));
}
