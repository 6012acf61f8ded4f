/** What will go away in a later release, and what to write instead. A code is a promise: it never means anything else. */
export interface DeprecationNotice {
  readonly title: string;
  /** The release that deprecated it. */
  readonly since: string;
  /** The first release that may lack it. */
  readonly removal: string;
  readonly remedy: string;
}

export type DeprecationCode = `KIT_DEP${number}`;

/** Nothing is deprecated before the first release. docs/reference/deprecations.md is generated from this table. */
export const deprecationNotices: Readonly<Record<DeprecationCode, DeprecationNotice>> = {};
