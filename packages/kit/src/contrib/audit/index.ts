export { AuditController } from './controller.ts';
export { audit, type AuditOptions } from './module.ts';
export { pruneAudit, type Pruning } from './prune.ts';
export { sealEntries } from './seal.ts';
export { verifyChain, type ChainReport, type VerifyChainOptions } from './verify-chain.ts';
export type { ChainFault } from './walk-chain.ts';
