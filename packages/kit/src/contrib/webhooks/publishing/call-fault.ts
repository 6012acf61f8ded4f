export type AudienceFault = 'audience_missing' | 'audience_conflict' | 'owner_invalid' | 'tenant_key_invalid' | 'broadcast_invalid';

export type PublishFault =
  | 'event_type_invalid'
  | 'data_invalid'
  | 'payload_too_large'
  | 'key_invalid'
  | 'option_unknown'
  | 'queue_invalid'
  | 'idempotency_key_reused'
  | 'no_transaction'
  | 'wrong_database'
  | 'database_unsupported'
  | 'not_synchronous'
  | 'not_installed'
  | 'no_commit_hook';

/** One of the things that are wrong with a call of `publish`. */
export interface CallFault {
  /** What is wrong, for programs. */
  readonly code: PublishFault | AudienceFault;
  /** What is wrong, for people. */
  readonly message: string;
}
