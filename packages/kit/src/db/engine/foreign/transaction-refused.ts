export type TransactionFault = 'no_transaction' | 'database_unsupported';

/** The transaction of another library that nothing can be written in: none is open, or its database is not supported. */
export class TransactionRefused extends Error {
  override readonly name = 'TransactionRefused';
  readonly code: TransactionFault;

  constructor(code: TransactionFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
