//! English words, the frequent ones first.

/// Words in the order of their frequency, roughly.
pub(super) fn words() -> Vec<&'static str> {
    TEXT.split_whitespace().collect()
}

const TEXT: &str = "
    the of and to in a is that for it as was with be by on not he his but at are this have from or had
    an they which one you were all her she there would their we him been has when who will no more if
    out so up said what its about than into them can only other time new some could these two may first
    then do any like my now over such our man me even most made after also well did many must before
    back see through way where get much go good being long same work year day last since against right
    down men very own make both between under never know while might us great old off come around
    another small found still take three place every part just left house home water shop order price
    page list card box table book light door paper street city river field garden window kitchen number
    letter story question answer morning evening winter summer snow ice glacier mountain valley stone
    path bridge train ship engine music picture colour green blue white black red quick slow heavy
    bright quiet early late clear warm cold simple careful useful common public private open close begin
    finish carry bring send keep hold turn move stay leave reach follow build break choose listen
    remember forget explain customer delivery parcel basket voucher account payment invoice refund
    season offer discount sale return size shape weight fabric wool cotton leather wood metal glass
    plastic shipped ordered arrived missing damaged perfect recommended
";
