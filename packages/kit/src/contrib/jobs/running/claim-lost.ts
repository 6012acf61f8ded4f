/** The claim on a job was lost; its transaction is rolled back. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost';

  constructor() {
    super('The claim on the job was lost: it was cancelled, or its lease expired and another worker may run it. Nothing was saved.');
  }
}
