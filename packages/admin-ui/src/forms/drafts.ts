import type { AdminField } from '../api/shapes.ts';
import type { InputValue, InputValues } from './form-values.ts';

// What was typed and not saved, kept in this browser: it survives a reload and a closed tab, and is removed when its user logs out.

/** Of this site: another one of the same origin has its own. */
const PREFIX = `kit-admin-draft ${new URL('.', document.baseURI).pathname} `;
/** The oldest go first. */
const DRAFTS_MAX = 20;

/** The fields that were changed, and what they were changed from. */
export interface Draft {
  readonly at: string;
  /** Of the record that the form was made from. */
  readonly tag?: string | undefined;
  readonly before: InputValues;
  readonly inputs: InputValues;
}

export function draftKey(userId: string, resource: string, id: string | null): string {
  return PREFIX + JSON.stringify([userId, resource, id]);
}

/** Credentials are not stored. The id of a file says nothing without its name. */
export function isStored({ kind, sensitive }: AdminField): boolean {
  return kind !== 'password' && kind !== 'file' && sensitive !== true;
}

export function readDraft(key: string, fields: readonly AdminField[]): Draft | null {
  try {
    const stored = JSON.parse(window.localStorage.getItem(key) ?? 'null') as Draft | null;
    if (stored === null || typeof stored.at !== 'string') return null;
    // The form may have other fields by now.
    const names = fields
      .filter(isStored)
      .flatMap(({ name }) => (isInput(stored.inputs[name]) && isInput(stored.before[name]) ? [name] : []));
    if (names.length === 0) return null;
    const only = (values: InputValues): InputValues => Object.fromEntries(names.map((name) => [name, values[name] as InputValue]));
    return { at: stored.at, tag: stored.tag, before: only(stored.before), inputs: only(stored.inputs) };
  } catch {
    return null;
  }
}

function isInput(value: unknown): value is InputValue {
  return (
    typeof value === 'string' || typeof value === 'boolean' || (Array.isArray(value) && value.every((item) => typeof item === 'string'))
  );
}

/** Stores what differs from `before`; nothing differs: removes it. False: what is sensitive, or too much, is not stored. */
export function writeDraft(key: string, fields: readonly AdminField[], { tag, before, inputs }: Omit<Draft, 'at'>): boolean {
  const changed = fields.filter(({ name }) => JSON.stringify(inputs[name]) !== JSON.stringify(before[name]));
  const names = changed.filter(isStored).map(({ name }) => name);
  if (names.length === 0) {
    forgetDraft(key);
    return changed.length === 0;
  }
  const only = (values: InputValues): InputValues => Object.fromEntries(names.map((name) => [name, values[name] ?? '']));
  const draft: Draft = { at: new Date().toISOString(), tag, before: only(before), inputs: only(inputs) };
  try {
    window.localStorage.setItem(key, JSON.stringify(draft));
    dropOldest();
    return names.length === changed.length;
  } catch {
    // A private window, or no room left.
    return false;
  }
}

export function forgetDraft(key: string): void {
  try {
    window.localStorage.removeItem(key);
  } catch {
    // Nothing was stored.
  }
}

/** At a logout all of them; when somebody logs in, those of others. */
export function forgetDrafts(exceptUserId?: string): void {
  try {
    const own = exceptUserId === undefined ? null : `${PREFIX}${JSON.stringify([exceptUserId]).slice(0, -1)},`;
    for (const key of storedKeys()) if (own === null || !key.startsWith(own)) window.localStorage.removeItem(key);
  } catch {
    // Nothing was stored.
  }
}

function storedKeys(): string[] {
  return Object.keys(window.localStorage).filter((key) => key.startsWith(PREFIX));
}

function dropOldest(): void {
  const keys = storedKeys();
  if (keys.length <= DRAFTS_MAX) return;
  const at = (key: string): string => /"at":"([^"]+)"/.exec(window.localStorage.getItem(key) ?? '')?.[1] ?? '';
  for (const key of keys.toSorted((a, b) => (at(a) < at(b) ? -1 : 1)).slice(0, keys.length - DRAFTS_MAX))
    window.localStorage.removeItem(key);
}
