import type { Db } from '../../../db/engine/db.ts';
import { GENESIS, isAsRecorded, isErased } from './chain.ts';
import { PRUNED } from './prune.ts';
import { countOutside, findEntry, latestOfAction, readChain, readInbox, unsealed, type ChainState, type Unsealed } from './store.ts';
import { walkChain, type ChainFault } from './walk-chain.ts';
import { objectOf, type OptionRules, readOptions, requireArguments } from '../../../options/read-options.ts';
import { aFunction, filledText, required, rule, queryable } from '../../../options/value-rule.ts';

export interface ChainReport {
  readonly ok: boolean;
  /** Entries of the chain that were read and are as recorded. */
  readonly checked: number;
  /** Entries that are not in the chain yet. Until they are, nothing shows when one is changed or removed. */
  readonly unsealed: Unsealed;
  readonly pruned_through: bigint;
  /** The last entry. Store it elsewhere: as `anchor` it proves later that nothing up to it was changed. */
  readonly head: { readonly seq: bigint; readonly hash: string };
  readonly fault: ChainFault | null;
}

export interface VerifyChainOptions {
  /** A `head` of an earlier report. */
  readonly anchor?: { readonly seq: bigint; readonly hash: string };
  /** Called while entries are checked, with how many and how many there are. */
  readonly onProgress?: (checked: number, total: number) => void;
}

const rules: OptionRules<VerifyChainOptions> = {
  anchor: objectOf<NonNullable<VerifyChainOptions['anchor']>>({
    seq: required(rule('a bigint', (value) => typeof value === 'bigint')),
    hash: required(filledText),
  }),
  onProgress: aFunction,
};

/**
 * Reads the whole chain in one snapshot and stops at the first fault: an entry that was changed, removed, moved or inserted; an end or a start
 * that does not match. Entries that are not sealed yet are counted; `sealEntries` seals them first.
 */
export function verifyChain(db: Db, options: VerifyChainOptions = {}): Promise<ChainReport> {
  readOptions('verifyChain()', options, rules);
  requireArguments('verifyChain()', { db }, { db: queryable });
  const snapshot = { readOnly: true, isolation: 'repeatable read' } as const;
  return db.transaction(async (tx) => {
    const chain = await readChain(tx);
    const walked = await walkChain(tx, chain, chain.length, options.onProgress);
    const fault =
      walked.fault ??
      endFault(chain, walked.hash) ??
      (await startFault(tx, chain)) ??
      (await outsideFault(tx, chain)) ??
      (await inboxFault(tx)) ??
      (await anchorFault(tx, chain, options));
    const head = { seq: chain.length, hash: chain.hash };
    const { checked } = walked;
    return { ok: fault === null, checked, unsealed: await unsealed(tx), pruned_through: chain.pruned_through, head, fault };
  }, snapshot);
}

function endFault({ length, hash }: ChainState, walkedTo: string): ChainFault | null {
  if (walkedTo === hash) return null;
  return { seq: length, message: `The chain should end with entry ${length}, but entries at its end are missing or were changed.` };
}

async function outsideFault(tx: Db, chain: ChainState): Promise<ChainFault | null> {
  const outside = await countOutside(tx, chain);
  return outside === 0 ? null : { seq: null, message: `${outside} entries are outside the chain.` };
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const PAGE = 1000;

/** An unsealed entry must match its own hash, and may not repeat one that is sealed: the sealer could not move it. */
async function inboxFault(tx: Db): Promise<ChainFault | null> {
  for (let after = FIRST_ID; ;) {
    const entries = await readInbox(tx, after, PAGE);
    for (const entry of entries) {
      if (!isAsRecorded(entry) || isErased(entry)) return { seq: null, message: `The unsealed entry ${entry.id} was changed.` };
      if (entry.sealed === 1) return { seq: null, message: `The entry ${entry.id} is sealed and waits to be sealed again.` };
      after = entry.id;
    }
    if (entries.length < PAGE) return null;
  }
}

/** A start other than the first entry must match the latest pruning, which is an entry of the chain. */
async function startFault(tx: Db, chain: ChainState): Promise<ChainFault | null> {
  if (chain.pruned_through === 0n) {
    // Numbers are not hashed: a chain without its first entries could be numbered from one again.
    return chain.pruned_hash === GENESIS
      ? null
      : { seq: 1n, message: 'Entry 1 is not the first of the chain: entries before it are missing.' };
  }
  const pruning = await latestOfAction(tx, PRUNED, chain);
  const said = (pruning?.metadata ?? {}) as { through_seq?: string; through_hash?: string };
  const fits = said.through_seq === String(chain.pruned_through) && said.through_hash === chain.pruned_hash;
  return fits
    ? null
    : { seq: chain.pruned_through, message: `Entries up to ${chain.pruned_through} are missing, but no pruning removed them.` };
}

async function anchorFault(tx: Db, chain: ChainState, { anchor }: VerifyChainOptions): Promise<ChainFault | null> {
  if (anchor === undefined) return null;
  const { seq, hash } = anchor;
  const message = `Entry ${seq} does not match the anchor.`;
  if (seq === chain.pruned_through) return hash === chain.pruned_hash ? null : { seq, message };
  if (seq < chain.pruned_through) return { seq, message: `Entry ${seq} was pruned: use a later anchor.` };
  return (await findEntry(tx, seq))?.hash === hash ? null : { seq, message };
}
