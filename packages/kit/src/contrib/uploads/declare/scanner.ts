import type { Readable } from 'node:stream';

/** A file in quarantine. */
export interface ScannedFile {
  readonly id: string;
  readonly filename: string;
  readonly contentType: string;
  readonly size: number;
  /** The bytes that are handed out if the verdict is clean, and no others. */
  read(): Promise<Readable>;
}

export type ScanVerdict = { readonly clean: true } | { readonly clean: false; readonly reason: string };

/** Says whether a file is clean. When it throws, the file stays in quarantine and is scanned again later. */
export type Scan = (file: ScannedFile) => Promise<ScanVerdict>;
