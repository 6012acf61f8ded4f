// What the dialogs of the first load are made of, in a file of its own so that it comes when one opens.
export { Modal } from '@mantine/core';
