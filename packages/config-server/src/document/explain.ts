import { overrideAt, type Override } from './environment.ts';
import { valueAt } from './key-path.ts';
import { isTable, type Table } from './value.ts';

/** One listed file's contribution to a document. */
export interface FileLayer {
  readonly origin: string;
  readonly table: Table;
}

/** Everything that went into a document, kept so that explanations need no I/O. */
export interface Layers {
  readonly files: readonly FileLayer[];
  readonly overrides: readonly Override[];
}

export interface ExplanationRow {
  readonly layer: 'file' | 'environment';
  readonly origin: string | null;
  readonly value: '***' | null;
  readonly shadows?: readonly string[];
}

/** Which layer decided a path. It cannot hold a value: a row has the mask or null. */
export interface PathExplanation {
  readonly winner: 'file' | 'environment' | null;
  readonly rows: readonly [ExplanationRow, ExplanationRow];
}

export function explainPath(layers: Layers, keys: readonly string[]): PathExplanation {
  const answering = answeringFiles(layers.files, keys);
  const file = answering.at(-1);
  const override = overrideAt(layers.overrides, keys);
  const shadows = answering.slice(0, -1);
  return {
    winner: override ? 'environment' : file === undefined ? null : 'file',
    rows: [{ ...row('file', file), ...(shadows.length > 0 ? { shadows } : {}) }, row('environment', override && `env ${override.name}`)],
  };
}

/** The origin of the layer that decided a path, for a path that the document has. */
export function winningOrigin(layers: Layers, keys: readonly string[]): string {
  const { rows } = explainPath(layers, keys);
  return rows[1].origin ?? rows[0].origin ?? '';
}

function row(layer: ExplanationRow['layer'], origin: string | undefined): ExplanationRow {
  return { layer, origin: origin ?? null, value: origin === undefined ? null : '***' };
}

/** Files that hold the path, in order. A file with a non-table above the path removes what earlier files set below it. */
function answeringFiles(files: readonly FileLayer[], keys: readonly string[]): string[] {
  let answering: string[] = [];
  for (const { origin, table } of files) {
    if (valueAt(table, keys) !== undefined) answering.push(origin);
    else if (replacesAbove(table, keys)) answering = [];
  }
  return answering;
}

function replacesAbove(table: Table, keys: readonly string[]): boolean {
  for (let length = 1; length < keys.length; length++) {
    const value = valueAt(table, keys.slice(0, length));
    if (value === undefined) return false;
    if (!isTable(value)) return true;
  }
  return false;
}
