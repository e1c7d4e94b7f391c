use super::*;
use std::os::unix::fs::PermissionsExt;

type Made = (&'static str, EntryType, &'static str); // a name, what it is, and its content or where it leads

fn archive(entries: &[Made]) -> File {
    let mut builder = Builder::new(tempfile::tempfile().unwrap());
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        // Written into the field itself: the methods of the library refuse what a hostile machine does not.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
        if is_link {
            header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
        }
        let data = if is_link { "" } else { content };
        header.set_size(data.len() as u64);
        header.set_cksum();
        builder.append(&header, data.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn unpacked(entries: &[Made]) -> (tempfile::TempDir, Fallible<usize>) {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let found = unpack(&mut archive(entries), &target);
    (folder, found)
}

const FILE: EntryType = EntryType::Regular;
const LINK: EntryType = EntryType::Symlink;
const FOLDER: EntryType = EntryType::Directory;

#[test]
fn a_folder_comes_back_as_it_was() {
    let source = tempfile::tempdir().unwrap();
    let deep = source.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("run.sh"), "echo").unwrap();
    fs::set_permissions(deep.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(source.path().join("é".repeat(90)), "long").unwrap();
    std::os::unix::fs::symlink("../run.sh", source.path().join("a/b/link")).unwrap();
    let mut packed = tempfile::tempfile().unwrap();
    pack(source.path(), &mut packed).unwrap();
    let target = tempfile::tempdir().unwrap();
    assert_eq!(unpack(&mut packed, target.path()).unwrap(), 3);
    assert_eq!(fs::metadata(target.path().join("a/b/run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_to_string(target.path().join("é".repeat(90))).unwrap(), "long");
    assert_eq!(fs::read_link(target.path().join("a/b/link")).unwrap(), Path::new("../run.sh"));
}

#[test]
fn nothing_lands_or_leads_outside() {
    let hostile: &[&[Made]] = &[
        &[("../x", FILE, "bad")],
        &[("/tmp/x", FILE, "bad")],
        &[("a/../../x", FILE, "bad")],
        &[("l", LINK, "/etc")],
        &[("l", LINK, "..")],
        &[("l", LINK, "")],
        &[("a", FOLDER, ""), ("a/l", LINK, "../..")],
        &[("d", FOLDER, ""), ("l", LINK, "d/../..")],
        &[("d/e", FOLDER, ""), ("d/l", LINK, "e/.."), ("x", LINK, "d/l/../..")],
        &[("h", EntryType::Link, "../secret")],
        &[("h", EntryType::Link, "/etc/passwd")],
        &[("l", LINK, "h"), ("h", EntryType::Link, "l")],
        &[("pipe", EntryType::Fifo, "")],
        &[("device", EntryType::Char, "")],
        &[("", FILE, "bad")],
    ];
    for entries in hostile {
        let (folder, found) = unpacked(entries);
        let error = found.unwrap_err();
        assert_eq!(error.code, "ArchiveRefused", "{entries:?}: {error}");
        let beside: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(beside, ["target"], "{entries:?}");
    }
}

#[test]
fn a_link_stays_a_link_and_a_second_name_has_the_same_content() {
    let (folder, found) = unpacked(&[("d/f", FILE, "hi"), ("d/l", LINK, "../d/f"), ("h", EntryType::Link, "d/f"), ("d/l", FILE, "in place")]);
    assert_eq!(found.unwrap(), 4);
    let read = |name: &str| fs::read_to_string(folder.path().join("target").join(name)).unwrap();
    assert_eq!((read("h"), read("d/f"), read("d/l")), ("hi".to_owned(), "hi".to_owned(), "in place".to_owned()));
}

#[test]
fn a_link_that_was_in_the_folder_before_leads_nothing_out() {
    let folder = tempfile::tempdir().unwrap();
    let (target, elsewhere) = (folder.path().join("target"), folder.path().join("elsewhere"));
    fs::create_dir_all(&target).unwrap();
    fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, target.join("out")).unwrap();
    for entries in [&[("out/x", FILE, "bad")][..], &[("l", LINK, "out/secret")]] {
        assert_eq!(unpack(&mut archive(entries), &target).unwrap_err().code, "ArchiveRefused");
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert!(!target.join("l").is_symlink());
}

/// One entry as it is in an archive, of any size.
fn block(kind: EntryType, name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut made = [header.as_bytes(), content].concat();
    made.resize(made.len().next_multiple_of(512), 0);
    made
}

fn refusal(archive: Vec<u8>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let error = unpack(&mut io::Cursor::new(archive), folder.path()).unwrap_err();
    assert_eq!(error.code, "ArchiveRefused", "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    error.message.clone()
}

#[test]
fn what_an_archive_says_about_an_entry_has_a_limit_and_its_content_has_none() {
    let much = vec![b'x'; usize::try_from(ABOUT_BYTES_MAX).unwrap()];
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let message = refusal([block(kind, b"about", &much), block(FILE, b"f", b"hi")].concat());
        assert_eq!(message, "the archive cannot be read: it says too much about one entry");
    }
    let folder = tempfile::tempdir().unwrap();
    let large = [block(FILE, b"f", &much), block(FOLDER, b"d", &much), block(FILE, b"g", b"hi")].concat();
    assert_eq!(unpack(&mut io::Cursor::new(large), folder.path()).unwrap(), 2);
    assert_eq!(fs::metadata(folder.path().join("f")).unwrap().len(), ABOUT_BYTES_MAX);
}

#[test]
fn a_name_that_no_system_would_take_is_refused_before_it_is_looked_for() {
    for name in ["a/".repeat(200_000), "../".repeat(100_000), "a".repeat(NAME_BYTES_MAX + 1)] {
        let message = refusal([block(EntryType::GNULongName, b"about", name.as_bytes()), block(FILE, b"f", b"hi")].concat());
        assert_eq!(message, "the archive cannot be read: a name in it is too long");
    }
}

#[test]
fn an_archive_that_ends_in_the_middle_is_refused() {
    let mut archive = [block(FILE, b"f", b"hi"), block(FILE, b"g", &[b'x'; 5000])].concat();
    archive.truncate(3000);
    let folder = tempfile::tempdir().unwrap();
    assert!(unpack(&mut io::Cursor::new(archive), folder.path()).is_err());
}

#[test]
fn folders_may_lie_deep_in_each_other() {
    let source = tempfile::tempdir().unwrap();
    let deep = (0..200).fold(source.path().to_owned(), |path, _| path.join("d"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("f"), "hi").unwrap();
    let mut packed = tempfile::tempfile().unwrap();
    pack(source.path(), &mut packed).unwrap();
    let target = tempfile::tempdir().unwrap();
    assert_eq!(unpack(&mut packed, target.path()).unwrap(), 1);
    assert_eq!(fs::read_to_string(target.path().join("d/".repeat(200)).join("f")).unwrap(), "hi");
}

#[test]
fn a_folder_of_the_archive_may_become_a_link_and_nothing_follows_it_out() {
    // What an entry means is decided when it comes, by what is there then.
    let (folder, found) =
        unpacked(&[("d/f", FILE, "hi"), ("l", LINK, "d"), ("l/g", FILE, "through"), ("l", FILE, "in its place"), ("d/f", LINK, "../l")]);
    assert_eq!(found.unwrap(), 5);
    let target = folder.path().join("target");
    assert_eq!(fs::read_to_string(target.join("d/g")).unwrap(), "through");
    assert_eq!(fs::read_to_string(target.join("d/f")).unwrap(), "in its place");
    let (_folder, found) = unpacked(&[("d/f", FILE, "hi"), ("d", LINK, "/etc")]);
    assert_eq!(found.unwrap_err().code, "ArchiveRefused");
}

#[test]
fn nonsense_is_no_archive() {
    let mut nonsense = tempfile::tempfile().unwrap();
    nonsense.write_all(&[7; 2048]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let error = unpack(&mut nonsense, folder.path()).unwrap_err();
    assert!(error.message.starts_with("the archive cannot be read: "), "{error}");
}

#[test]
fn what_is_no_folder_is_not_packed() {
    let error = pack(Path::new("/nowhere"), &mut tempfile::tempfile().unwrap()).unwrap_err();
    assert_eq!(error.message, "/nowhere is not a folder");
}
