/** What will go away in a later release, and what to write instead. A code is a promise: it never means anything else. */
export interface DeprecationNotice {
  readonly title: string;
  /** The release that deprecated it. */
  readonly since: string;
  /** The first release that may lack it. */
  readonly removal: string;
  readonly remedy: string;
}

/** docs/reference/deprecations.md is generated from this table. */
export const deprecationNotices = {
  KIT_DEP0001: {
    title: 'wrapRoute() for overriding a route of a controller',
    since: '0.1.0',
    removal: '1.0.0',
    remedy: "Write `override list = this.wrap('list', facts, handler)`: it is typed, and knows the inherited route.",
  },
} as const satisfies Readonly<Record<`KIT_DEP${number}`, DeprecationNotice>>;

export type DeprecationCode = keyof typeof deprecationNotices;
