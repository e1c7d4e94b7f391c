/** Files of this computer, as the transfers need them: what Node has and browsers have not. */

/** Open for reading, or a new one for writing. */
export interface LocalFile {
  size(): Promise<number>;
  /** Empty behind the end. */
  read(at: number, bytes: number): Promise<Uint8Array>;
  write(chunk: Uint8Array): Promise<void>;
  /** Empty, as at the beginning. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** A new file that becomes what it is to be when it is whole, and not before. */
export interface NewFile extends LocalFile {
  keep(): Promise<void>;
  /** Nothing is left of it. */
  discard(): Promise<void>;
}

export interface Disk {
  open(path: string | URL): Promise<LocalFile>;
  /** Beside the file that it will be. */
  create(path: string | URL): Promise<NewFile>;
  /** Without a name: it is gone when it is closed. */
  temporary(): Promise<LocalFile>;
  pack(folder: string | URL, into: LocalFile): Promise<void>;
  /** How many files. */
  unpack(archive: LocalFile, into: string | URL): Promise<number>;
}
