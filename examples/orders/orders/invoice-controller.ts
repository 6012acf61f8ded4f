import { UploadController } from 'kit/contrib/uploads';

/** Customers send invoices here, then attach them to their orders. */
export class InvoiceController extends UploadController {
  static override readonly tags = ['invoices'];
  static override readonly policy = {
    contentTypes: ['application/pdf', 'image/*'],
    bytesMax: 10_000_000,
    quotaPerOwner: { bytes: 500_000_000, count: 1000 },
  };
}
