import { overrideAt, type Override } from './environment.ts';
import { joinKeyPath, replacesAbove, valueAt } from './key-path.ts';
import type { KeyPositions, Position } from './position/key-positions.ts';
import type { Table } from './value.ts';

/** One listed file's contribution to a document. */
export interface FileLayer {
  readonly origin: string;
  readonly table: Table;
  /** Present when explanations show lines. */
  readonly positions?: KeyPositions;
  /** Id of the commit that the file was read from; absent for a file of the disk. */
  readonly commit?: string;
  /** How secret values came into the file, by key path: `sops`, `age`, or the reference. */
  readonly via?: ReadonlyMap<string, string>;
}

/** Everything that went into a document, kept so that explanations need no I/O. */
export interface Layers {
  readonly files: readonly FileLayer[];
  readonly overrides: readonly Override[];
  /** Whether explanations show lines. Absent: no. */
  readonly showLines?: boolean;
}

export interface ExplanationRow {
  readonly layer: 'file' | 'environment';
  readonly origin: string | null;
  readonly value: '***' | null;
  readonly shadows?: readonly string[];
  /** With `explain_lines`: where the file writes the key; null where there is no such place. */
  readonly line?: number | null;
  readonly column?: number | null;
  /** The commit that the file was read from. */
  readonly commit?: string;
  /** Set for a value that was encrypted in the file, or that the file refers to. */
  readonly via?: string;
}

/** Which layer decided a path. It cannot hold a value: a row has the mask or null. */
export interface PathExplanation {
  readonly winner: 'file' | 'environment' | null;
  readonly rows: readonly [ExplanationRow, ExplanationRow];
}

interface Decision {
  /** Files that have the path, the last one wins. */
  readonly files: readonly FileLayer[];
  readonly override: Override | undefined;
}

export function explainPath(layers: Layers, keys: readonly string[]): PathExplanation {
  const { files, override } = decide(layers, keys);
  const file = files.at(-1);
  const shadows = files.slice(0, -1).map((layer) => layer.origin);
  const { showLines } = layers;
  const secret = file?.via === undefined ? undefined : secretAt(file.via, keys);
  return {
    winner: override ? 'environment' : file === undefined ? null : 'file',
    rows: [
      {
        ...row('file', file?.origin),
        // The text of a key that was encrypted with the table above it has no place; the table has.
        ...(showLines ? place(file?.positions?.at(keys) ?? (secret && file?.positions?.at(secret.keys))) : {}),
        ...(file?.commit === undefined ? {} : { commit: file.commit }),
        ...(shadows.length > 0 ? { shadows } : {}),
        ...(secret === undefined ? {} : { via: secret.via }),
      },
      { ...row('environment', override && `env ${override.name}`), ...(showLines ? place(undefined) : {}) },
    ],
  };
}

/** The origin of the layer that decided a path, for a path that the document has. */
export function winningOrigin(layers: Layers, keys: readonly string[]): string {
  const { files, override } = decide(layers, keys);
  return override ? `env ${override.name}` : (files.at(-1)?.origin ?? '');
}

function decide(layers: Layers, keys: readonly string[]): Decision {
  const override = overrideAt(layers.overrides, keys);
  return override === null ? { files: [], override: undefined } : { files: answeringFiles(layers.files, keys), override };
}

function row(layer: ExplanationRow['layer'], origin: string | undefined): ExplanationRow {
  return { layer, origin: origin ?? null, value: origin === undefined ? null : '***' };
}

function place(position: Position | undefined): Pick<ExplanationRow, 'line' | 'column'> {
  return { line: position?.line ?? null, column: position?.column ?? null };
}

/** Files that hold the path, in order. A file with a non-table above the path removes what earlier files set below it. */
function answeringFiles(files: readonly FileLayer[], keys: readonly string[]): FileLayer[] {
  let answering: FileLayer[] = [];
  for (const layer of files) {
    if (valueAt(layer.table, keys) !== undefined) answering.push(layer);
    else if (replacesAbove(layer.table, keys)) answering = [];
  }
  return answering;
}

/** How a value was read. A key of a table that was encrypted as a whole has the path above it. */
function secretAt(via: ReadonlyMap<string, string>, keys: readonly string[]): { via: string; keys: readonly string[] } | undefined {
  for (let length = keys.length; length >= 0; length--) {
    const above = keys.slice(0, length);
    const found = via.get(joinKeyPath(above));
    if (found !== undefined) return { via: found, keys: above };
  }
  return undefined;
}
