import { expect, test } from 'vitest';
import { readUploadOptions } from './options.ts';
import { diskStore } from './stores/disk-store.ts';

test('an option of a policy says where it belongs; another unknown one says what may be meant', () => {
  const read = (options: object) => () => readUploadOptions({ store: diskStore({ folder: 'never-opened' }), ...options });
  expect(read({ bytesMax: 5, contentTypes: ['image/*'] })).toThrow(
    'uploads(): "bytesMax" is an option of the policy of a controller. Move it: class extends UploadController { static override readonly policy = { bytesMax: … } }.',
  );
  expect(read({ downloadSecond: 5 })).toThrow('uploads(): unknown option "downloadSecond". Did you mean "downloadSeconds"?');
  expect(read({ scan: undefined })).toThrow('uploads(): scan is undefined.');
});
